// SPDX-License-Identifier: MIT
// What V8 itself tells of a stack: [[FUNCTION, FILE, LINE], …], innermost first; what it does not know is null.
'use strict';

Error.stackTraceLimit = 1000;

function describe(error, sites) {
  const callers = sites.filter((site) => !site.isAsync || !site.isAsync());
  return callers.map((site) => [site.getFunctionName(), site.getFileName() || null, site.getLineNumber()]);
}

// Of whoever called this function, and those above.
module.exports = function stackAbove(called) {
  const before = Error.prepareStackTrace;
  const holder = {};
  Error.prepareStackTrace = describe;
  Error.captureStackTrace(holder, called);
  const stack = holder.stack;
  Error.prepareStackTrace = before;
  return stack;
};
