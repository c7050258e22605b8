// SPDX-License-Identifier: MIT
// Blocks in the way that its argument names, after it has said what its stack is, as V8 itself tells it:
//
//     ready PID
//     [[FUNCTION, FILE, LINE], …]       see truth.js
//
// The call that blocks is on the line where the stack was taken.
'use strict';

const fs = require('fs');
const childProcess = require('child_process');
const { Worker, isMainThread, workerData } = require('worker_threads');
const stackAbove = require('./truth.js');

const cell = new Int32Array(new SharedArrayBuffer(4));

// Of its caller and whoever called that.
function say() {
  fs.writeSync(1, `ready ${process.pid}\n${JSON.stringify(stackAbove(say))}\n`);
}

const ways = {
  wait() {
    say(), Atomics.wait(cell, 0, 0, 600000); // its parent may be gone
  },
  read() {
    const pipe = fs.openSync(process.argv[4], 'r+');
    say(), fs.readSync(pipe, Buffer.alloc(1));
  },
  exec() {
    say(), childProcess.execSync('exec cat', { stdio: ['inherit', 'ignore', 'ignore'] });
  },
  // The same again and again, for those who look at waits over time.
  naps() {
    say(); for (;;) Atomics.wait(cell, 0, 0, 5);
  },
  reads() {
    const pipe = fs.openSync(process.argv[4], 'r+');
    say(); for (;;) fs.readSync(pipe, Buffer.alloc(1));
  },
  execs() {
    say(); for (;;) childProcess.spawnSync('sleep', ['0.005']);
  },
  // With --expose-gc: all objects move, at times.
  moves() {
    say(); for (let n = 0; ; n++) n % 10 ? Atomics.wait(cell, 0, 0, 5) : gc();
  },
  spin() {
    say(); for (let i = 0; i < 1e12; i++) cell[0] += 1;
  },
};

class Base {
  constructor(next) {
    this.value = next();
  }
}

class Derived extends Base {
  static create(next) {
    return new Derived(next);
  }

  get property() {
    return this.next();
  }

  method(next) {
    this.next = next;
    return this.property;
  }

  #secret(next) {
    return next();
  }

  reveal(next) {
    return this.#secret(next);
  }
}

function* generator(next) {
  yield next();
}

function hot(n, next) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += i % 7;
  return next(sum);
}

// With --allow-natives-syntax: hot() as optimised code, which calls what never is.
function optimised(next) {
  const never = eval('(f) => %NeverOptimizeFunction(f)');
  const prepare = eval('(f) => %PrepareFunctionForOptimization(f)');
  const optimise = eval('(f) => %OptimizeFunctionOnNextCall(f)');
  let armed = false;
  function step(sum) { return armed ? next() : sum; }
  never(step);
  prepare(hot);
  for (let i = 0; i < 10; i++) hot(i, step);
  optimise(hot);
  hot(10, step);
  armed = true;
  return hot(11, step);
}

function many(next) {
  var a0=0,a1=1,a2=2,a3=3,a4=4,a5=5,a6=6,a7=7,a8=8,a9=9,b0=0,b1=1,b2=2,b3=3,b4=4,b5=5,b6=6,b7=7,b8=8,b9=9;
  var c0=0,c1=1,c2=2,c3=3,c4=4,c5=5,c6=6,c7=7,c8=8,c9=9,d0=0,d1=1,d2=2,d3=3,d4=4,d5=5,d6=6,d7=7,d8=8,d9=9;
  var e0=0,e1=1,e2=2,e3=3,e4=4,e5=5,e6=6,e7=7,e8=8,e9=9,f0=0,f1=1,f2=2,f3=3,f4=4,f5=5,f6=6,f7=7,f8=8,f9=9;
  var g0=0,g1=1,g2=2,g3=3,g4=4,g5=5,g6=6,g7=7,g8=8,g9=9,h0=0,h1=1,h2=2,h3=3,h4=4,h5=5,h6=6,h7=7,h8=8,h9=9;
  return eval('next()'); // keeps all of them: more than V8 lists one by one
}

const paths = {
  plain: (next) => next(),
  callback: (next) => [3, 1].map(function each(x) { return x === 3 ? next() : 0; }),
  sort: (next) => [2, 1].sort(function compare() { next(); return 0; }),
  replace: (next) => 'x'.replace(/x/, function replacer() { return next(); }),
  construct: (next) => Derived.create(next),
  accessor: (next) => new Derived(() => 0).method(next),
  private: (next) => new Derived(() => 0).reveal(next),
  reflect: (next) => Reflect.apply(function applied() { return next(); }, null, []),
  bound: (next) => (function binds() { return next(); }).bind(null)(),
  generator: (next) => [...generator(next)],
  closure: (next) => ((a) => ((b) => ((c) => next(a + b + c))(1))(2))(3),
  evaluated: (next) => eval('(function inEval() {\n  return next(); })()'),
  spelled: (next) => ({ 'naïve ☃ name': () => next() })['naïve ☃ name'](),
  proxied: (next) => new Proxy({}, { get: function trap() { return next(); } }).x,
  parsed: (next) => JSON.parse('[1]', function reviver() { return next(); }),
  json: (next) => JSON.stringify({ toJSON() { return next(); } }),
  many,
  recursion: (next) => (function deep(n) { return n ? deep(n - 1) : next(); })(60),
  timer: (next) => setTimeout(function onTimer() { next(); }, 1),
  awaited: async function awaited(next) {
    await null;
    await new Promise((resolve) => setImmediate(resolve));
    next();
  },
  promised: (next) => Promise.resolve().then(function onResolved() { next(); }),
  optimised,
};

function main(path, way) {
  paths[path](ways[way]);
}

if (isMainThread && process.argv[2] === 'worker') {
  new Worker(__filename, { argv: process.argv.slice(3), workerData: process.argv[3] });
} else if (!isMainThread) {
  main(workerData, process.argv[3]);
} else {
  main(process.argv[2], process.argv[3]);
}
