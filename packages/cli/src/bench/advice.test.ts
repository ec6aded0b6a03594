import { expect, test } from 'vitest';
import { adviceOn, answerOn, type Findings } from './advice.js';

const decoding: Findings = {
  boundBy: { io: 0.02, decode: 0.93, consumer: 0.05 },
  workers: 2,
  cores: 4,
  stored: { width: 500, height: 375 },
  lacksCropIndex: false,
  isRemote: false,
  hasCache: false,
  prefetchBatches: 4,
  step: null,
};

test('if decoding is the bottleneck, the options that speed it up are listed, the largest gain first', () => {
  expect(adviceOn(decoding)).toEqual([
    '93 % of the time is spent waiting for decoding:',
    '  --resize 256 when packing (2.1 times fewer pixels; crops are then taken from smaller images): about 2.0 times as fast',
    '  --workers 4, one per core: up to 1.9 times as fast',
  ]);
});

test('an option without a gain is not listed', () => {
  const small = { ...decoding, workers: 4, stored: { width: 256, height: 256 }, lacksCropIndex: true };
  expect(adviceOn(small).join('\n')).not.toMatch(/--resize|--workers/);
  expect(adviceOn(small).join('\n')).toContain(
    '--index crops: random crops of baseline JPEGs 1.2 to 1.4 times as fast',
  );
});

test('if reading from remote storage is the bottleneck, a cache is suggested, unless there is one', () => {
  const remote = { ...decoding, boundBy: { io: 0.8, decode: 0.15, consumer: 0.05 }, isRemote: true };
  expect(adviceOn(remote).join('\n')).toContain('--cache FOLDER on a local disk: up to 5.0 times as fast');
  expect(adviceOn({ ...remote, hasCache: true }).join('\n')).not.toContain('--cache FOLDER');
});

test('a loader that keeps up with the step gets no advice, and one that sometimes does not gets more batches ahead', () => {
  const step = { stepMs: 87, batches: 400, waited: 2, share: 0.003 };
  const busy = { ...decoding, boundBy: { io: 0, decode: 0.003, consumer: 0.997 }, step };
  expect(answerOn(step)).toBe('a step of 87 ms waited in 2 of 400 batches, 0.3 % of the time');
  expect(adviceOn(busy)).toEqual(['The loader keeps up with the step, so a faster loader would change nothing.']);
  expect(adviceOn({ ...busy, step: { ...step, share: 0.05 } }).join('\n')).toContain('--prefetch-batches 8');
  const slow = { ...busy, boundBy: { io: 0, decode: 0.4, consumer: 0.6 }, step: { ...step, share: 0.4 } };
  expect(adviceOn(slow).join('\n')).toContain('--workers 4');
});
