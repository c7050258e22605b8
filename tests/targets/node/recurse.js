// SPDX-License-Identifier: MIT
// Recurses and returns as fast as it can. Which function calls which at what depth is fixed by those before, so that a frame
// that is missing or wrong shows: at depth d, f<i> calls f<(3 * i + d) % 8>, and entry() begins with f0 to f7 in turn.
'use strict';

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

require('fs').writeSync(1, `ready ${process.pid}\n`);
main();
