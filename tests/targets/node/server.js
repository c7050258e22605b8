// SPDX-License-Identifier: MIT
// An application with an HTTP server in the main thread and another in a worker, timers and promises, and workers that wait:
//
//     node server.js FIFO
//     ready PID
//     {"port": …, "workerPort": …}
//     {"who": …, "stack": [[FUNCTION, FILE, LINE], …]}     of each worker that waits
//
// GET /orders answers. GET /handled, /awaited and /timer block the main thread until there is a byte in the FIFO, each called in
// another way. Before it blocks a thread says what its stack is, as V8 itself tells it (see truth.js), on that very line.
'use strict';

const fs = require('fs');
const http = require('http');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const stackAbove = require('./truth.js');

function say(who) {
  fs.writeSync(1, `${JSON.stringify({ who, stack: stackAbove(say) })}\n`);
}

class Orders {
  constructor(fifo) {
    this.fifo = fifo;
  }

  rows(read) {
    return [1, 2, 3].map((number) => ({ number, read: number === 2 ? read() : 0 }));
  }

  blocked(who) {
    return this.rows(() => this.#read(who));
  }

  #read(who) {
    say(who), fs.readSync(this.fifo, Buffer.alloc(1));
  }
}

function later(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function find(orders, path) {
  await later(1);
  return path === '/awaited' ? orders.blocked('main') : orders.rows(() => 1);
}

function answer(response, rows) {
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(rows));
}

function listen(orders, listening) {
  const server = http.createServer(function handle(request, response) {
    if (request.url === '/handled')
      answer(response, orders.blocked('main'));
    else if (request.url === '/timer')
      setTimeout(function onTimer() { answer(response, orders.blocked('main')); }, 1);
    else
      find(orders, request.url).then((rows) => answer(response, rows));
  });
  server.listen(0, '127.0.0.1', () => listening(server.address().port));
}

const roles = {
  serving: (orders) => listen(orders, (port) => parentPort.postMessage(port)),
  reading: (orders) => later(1).then(() => orders.blocked('reading')),
  waiting(orders) {
    parentPort.once('message', function turn(cell) {
      [cell].forEach((one) => { say('waiting'), Atomics.wait(one, 0, 0); });
    });
  },
};

function start(role) {
  return new Worker(__filename, { workerData: { role }, argv: process.argv.slice(2) });
}

if (isMainThread) {
  const orders = new Orders(fs.openSync(process.argv[2], 'r+'));
  setInterval(() => orders.rows(() => 1), 5);
  start('serving').once('message', (workerPort) => listen(orders, (port) => {
    fs.writeSync(1, `ready ${process.pid}\n${JSON.stringify({ port, workerPort })}\n`);
    start('reading');
    start('waiting').postMessage(new Int32Array(new SharedArrayBuffer(4)));
  }));
} else {
  // A worker reads from a FIFO of its own, which nobody writes to.
  roles[workerData.role](new Orders(fs.openSync(`${process.argv[2]}.${workerData.role}`, 'r+')));
}
