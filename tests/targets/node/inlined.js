// SPDX-License-Identifier: MIT
// Blocks in a function that compiled code has called, below functions that were inlined into it. With --allow-natives-syntax:
//
//     inlined.js turbofan|maglev|osr|deoptimised|resumed|continued|baseline [naps]
//
//     ready PID
//     [[FUNCTION, FILE, LINE], …]       see truth.js
'use strict';

const fs = require('fs');
const stackAbove = require('./truth.js');

const cell = new Int32Array(new SharedArrayBuffer(4));
const armed = new Int32Array(1); // code does not depend on what is in it
const tier = process.argv[2];
const list = [1, 2, 3];

// Of its caller and whoever called that.
function say() {
  fs.writeSync(1, `ready ${process.pid}\n${JSON.stringify(stackAbove(say))}\n`);
}

// Never compiled.
function leaf(x) {
  if (armed[0] && x === 2 && tier === 'resumed') %DeoptimizeFunction(again);
  if (armed[0] && x === 2 && tier === 'continued') %DeoptimizeFunction(outer);
  if (!armed[0] || x !== 3) return x;
  if (tier === 'deoptimised') %DeoptimizeFunction(outer);
  if (process.argv[3] !== 'naps')
    say(), Atomics.wait(cell, 0, 0, 600000); // its parent may be gone
  else
    for (say();;) Atomics.wait(cell, 0, 0, 5);
}
%NeverOptimizeFunction(leaf);

function calls(x) {
  const more = x + 1;
  return leaf(x)
    + leaf(more + 1);
}

class Base {
  constructor(x) {
    this.x = calls(x);
  }
}

class Derived extends Base {
  constructor(x) {
    super(x);
  }

  get property() {
    return applied.apply(this, [this.x]);
  }

  method(x) { return calls(x) + 1; }
}

function applied(x) {
  try {
    return this.method(x);
  } finally {
    cell[0] = 0;
  }
}

const derived = new Derived(10);

function each(sum) {
  list.forEach(function inner(x) {
    sum += x === 1 ? 0 : new Derived(x).x;
    sum += x === 3
      ? 1 : derived.property;
  });
  return sum;
}

function outer(n) {
  let sum = 0;
  for (let i = 0; i < n; i++)
    sum += each(i);
  return sum;
}

// Optimised when it calls for the first time, and interpreted from then on.
function again(x) {
  return calls(x) +
    calls(3);
}

// Compiled while it runs, so that what is executed is not the code that the function has.
function loops(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    if (i === 100) %OptimizeOsr();
    armed[0] = i >> 10;
    sum += each(i);
  }
  return sum;
}

const functions = [calls, Base, Derived, Derived.prototype.method, applied, each, outer, again, loops];
const getter = Object.getOwnPropertyDescriptor(Derived.prototype, 'property').get;

function main() {
  for (const f of [...functions, getter]) tier === 'baseline' ? %CompileBaseline(f) : %PrepareFunctionForOptimization(f);
  for (let i = 0; i < 100; i++) outer(3);
  if (tier === 'osr')
    return loops(2000);
  if (tier === 'resumed') {
    for (let i = 0; i < 100; i++) again(i);
    %OptimizeFunctionOnNextCall(again);
    again(5);
    armed[0] = 1;
    return again(2);
  }
  if (tier === 'maglev')
    eval('%OptimizeMaglevOnNextCall(outer)'); // older versions do not know it
  else if (tier !== 'baseline')
    %OptimizeFunctionOnNextCall(outer);
  outer(3);
  armed[0] = 1;
  return outer(3);
}

main();
