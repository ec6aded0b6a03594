import { expect } from 'vitest';

/** One for each process: files that share it run this anew. */
const KNOWN = Symbol.for('shardtool.equal-bytes');
const known = globalThis as { [KNOWN]?: true };

// vitest compares bytes one by one, a megabyte in a second. What differs is still told by vitest.
if (known[KNOWN] === undefined) {
  known[KNOWN] = true;
  expect.addEqualityTesters([
    (a, b) => {
      if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.constructor !== b.constructor) return undefined;
      return Buffer.compare(a, b) === 0 ? true : undefined;
    },
  ]);
}
