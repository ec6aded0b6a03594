import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Control } from './control.js';
import { emptyJob, type Job, JobRecords, jobMemory } from './job.js';

const whole = fc.integer({ min: 0, max: 2 ** 53 - 1 });
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const job: fc.Arbitrary<Job> = fc.record({
  shard: int32,
  offset: whole,
  bytes: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  number: whole,
  epoch: uint32,
  occurrence: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  source: int32,
  slot: int32,
  row: int32,
  orientation: fc.integer({ min: 1, max: 8 }),
  crc32: fc.oneof(fc.constant(-1), uint32),
  cropOffset: whole,
  cropBytes: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  cropCrc32: fc.oneof(fc.constant(-1), uint32),
  bucket: fc.integer({ min: 0, max: 254 }),
});

test('jobs are read back unchanged', () => {
  fc.assert(
    fc.property(fc.array(job, { minLength: 1, maxLength: 8 }), (jobs) => {
      const records = new JobRecords(jobMemory(jobs.length));
      for (const [place, one] of jobs.entries()) records.write(place, one);
      for (const [place, one] of jobs.entries()) {
        const read = emptyJob();
        records.read(place, read);
        expect(read).toEqual(one);
      }
    }),
  );
});

test('each job is taken once, in the order of publication, over many rounds of the ring', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5), { maxLength: 60 }), (lots) => {
      const control = Control.create({ slots: 1, jobs: 5 });
      // As after 2^32 jobs, minus two: the counters wrap around.
      new Int32Array(control.buffers.words).fill(-2, 0, 2);
      const taken = emptyJob();
      let next = 0;
      for (const lot of lots) {
        for (let i = 0; i < lot; i++) control.push({ ...emptyJob(), number: next + i });
        for (let i = 0; i < lot; i++) {
          expect(control.take(taken)).toBe(true);
          expect(taken.number).toBe(next++);
        }
      }
      control.stop();
      expect(control.take(taken)).toBe(false);
    }),
  );
});
