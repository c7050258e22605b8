// SPDX-License-Identifier: MIT
// node many.js N DEPTH: N workers that wait, each so deep in a recursion, and one that runs. "gap" makes the program say for how
// many nanoseconds that one was kept from running, at most, since it was last asked.
'use strict';

const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

function descend(left) {
  if (left)
    return descend(left - 1);
  parentPort.postMessage('there');
  return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function spin(longest) {
  for (let last = process.hrtime.bigint(); ;) {
    const now = process.hrtime.bigint();
    if (now - last > Atomics.load(longest, 0))
      Atomics.store(longest, 0, now - last);
    last = now;
  }
}

function start(data) {
  const worker = new Worker(__filename, { workerData: data });
  return new Promise((resolve) => worker.once(data.spin ? 'online' : 'message', resolve));
}

async function main(count, depth) {
  const longest = new BigInt64Array(new SharedArrayBuffer(8));
  await Promise.all([...Array(count)].map(() => start({ depth })));
  await start({ spin: longest });
  console.log('ready');
  for await (const line of require('readline').createInterface({ input: process.stdin }))
    console.log(String(Atomics.exchange(longest, 0, 0n)));
  process.exit();
}

if (isMainThread)
  main(...process.argv.slice(2).map(Number));
else if (workerData.spin)
  spin(workerData.spin);
else
  descend(workerData.depth);
