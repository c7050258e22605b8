// SPDX-License-Identifier: MIT
// Recurses and returns as fast as it can. Which function calls which at what depth is fixed by those before, so that a frame
// that is missing or wrong shows: at depth d, f<i> calls f<(3 * i + d) % 8>, and entry() begins with f0 to f7 in turn.
// recurse.js [N]: so do N workers.
'use strict';

const { Worker, isMainThread, workerData } = require('worker_threads');

const DEPTH = 24;
const source = [];
for (let i = 0; i < 8; i++) {
  source.push(`function f${i}(d, n) {
  if (d === n) return ${i};
  return all[(3 * ${i} + d) % 8](d + 1, n) + ${i};
}`);
}
const all = [];
const made = new Function('all', `${source.join('\n')}\nreturn [f0, f1, f2, f3, f4, f5, f6, f7];`);
all.push(...made(all));

function entry(k) {
  return all[k % 8](0, k % DEPTH);
}

function main() {
  let sum = 0;
  for (let k = 0; k < 1e10; k++) sum += entry(k);
  return sum;
}

const started = isMainThread ? new Int32Array(new SharedArrayBuffer(4)) : workerData;
const workers = Number(process.argv[2] || 0);
if (isMainThread) {
  for (let i = 0; i < workers; i++) new Worker(__filename, { workerData: started });
  for (let seen = 0; seen < workers; seen = Atomics.load(started, 0)) Atomics.wait(started, 0, seen);
  require('fs').writeSync(1, `ready ${process.pid}\n`);
} else {
  Atomics.add(started, 0, 1);
  Atomics.notify(started, 0);
}
main();
