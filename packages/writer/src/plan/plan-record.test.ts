import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PlanRecordError } from '../errors.js';
import { type FileTable, pathAt } from '../source/file-table.js';
import { encodePlan, type PlanFacts, readPlanHeader, readShardPlan, writePlanRecord } from './plan-record.js';
import { decodeShardPlan, encodeShardPlan, type ShardPlan } from './shard-plan.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plan-'));
  path = join(folder, 'plan');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const FACTS: PlanFacts = {
  ...{ source: '/photos/', options: { seed: 1 }, classes: ['cat', 'dog'], columns: [], samples: 3, files: 4 },
  ...{
    sourceBytes: 1000,
    sourceDigest: null,
    shardBytes: 4000,
    skippedFiles: 1,
    skippedFolders: [],
    hiddenFolders: [],
    duplicates: 0,
    classConflicts: 0,
  },
};

interface SampleOfPlan {
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly mtimeMs: number }[];
  readonly cls: number;
  readonly label: string | null;
}

function planDataset(samples: readonly SampleOfPlan[]): ShardPlan {
  const members = samples.flatMap(({ files }) => files);
  const files = tableOf(members);
  const fileStart = new Uint32Array(samples.length + 1);
  for (const [i, sample] of samples.entries()) fileStart[i + 1] = fileStart[i]! + sample.files.length;
  const cls = Int32Array.from(samples, (sample) => sample.cls);
  const columns = new Map(samples.length === 0 ? [] : [['label', samples.map(({ label }) => label)]]);
  return { samples: samples.length, fileStart, files, cls, columns, texts: new Map() };
}

function tableOf(members: SampleOfPlan['files']): FileTable {
  const paths = members.map(({ path }) => Buffer.from(path));
  let end = 0;
  return {
    count: members.length,
    text: Buffer.concat(paths),
    ends: Float64Array.from(paths, ({ length }) => (end += length)),
    bytes: Float64Array.from(members, ({ bytes }) => bytes),
    mtimeMs: Float64Array.from(members, ({ mtimeMs }) => mtimeMs),
  };
}

/** Returns a plan in the form that {@link planDataset} takes. */
function samplesOf(plan: ShardPlan): SampleOfPlan[] {
  return Array.from({ length: plan.samples }, (_, s) => ({
    files: Array.from({ length: plan.fileStart[s + 1]! - plan.fileStart[s]! }, (__, i) => {
      const file = plan.fileStart[s]! + i;
      return { path: pathAt(plan.files, file), bytes: plan.files.bytes[file]!, mtimeMs: plan.files.mtimeMs[file]! };
    }),
    cls: plan.cls[s]!,
    label: plan.columns.get('label')![s] as string | null,
  }));
}

const file = fc.record({
  path: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
  bytes: fc.maxSafeInteger().map((n) => Math.max(-1, n)),
  mtimeMs: fc.double({ min: 0, max: 1e13, noNaN: true }).map((ms) => ms + 0),
});
const sample = fc.record({
  files: fc.array(file, { minLength: 1, maxLength: 3 }),
  cls: fc.integer({ min: -1, max: 99_999 }),
  label: fc.option(fc.string()),
});

test('a shard plan is unchanged after encoding and decoding', () => {
  fc.assert(
    fc.property(fc.array(sample, { maxLength: 6 }), (samples) => {
      const bytes = encodeShardPlan(planDataset(samples));
      expect(samplesOf(decodeShardPlan(Uint8Array.from(bytes)))).toEqual(samples);
    }),
  );
});

const SHARDS = [
  planDataset([
    { files: [{ path: 'cat/1.jpg', bytes: 500, mtimeMs: 1.5 }], cls: 0, label: 'a' },
    { files: [{ path: 'dog/1.jpg', bytes: 300, mtimeMs: 2 }], cls: 1, label: null },
  ]),
  planDataset([
    {
      files: [
        { path: 'cat/2.jpg', bytes: -1, mtimeMs: 0 },
        { path: 'cat/2.json', bytes: 200, mtimeMs: 3 },
      ],
      cls: 0,
      label: 'b',
    },
  ]),
];

test('a record returns the facts and the plan of each shard, in any order of reading', () => {
  const written = writePlanRecord(path, FACTS, SHARDS);
  const header = readPlanHeader(path);
  expect(header).toEqual(written);
  expect(header).toMatchObject(FACTS);
  expect(header.shards.map(({ files, sourceBytes }) => [files, sourceBytes])).toEqual([
    [2, 800],
    [2, 200],
  ]);
  const fd = openSync(path, 'r');
  for (const shard of [1, 0]) {
    expect(samplesOf(readShardPlan(fd, header.shards[shard]!, path))).toEqual(samplesOf(SHARDS[shard]!));
  }
  closeSync(fd);
});

test('the digest of a plan equals that of its record, and changes with every option, path, size, time and class', () => {
  const { digest } = encodePlan(FACTS, SHARDS);
  expect(writePlanRecord(path, FACTS, SHARDS).digest).toBe(digest);
  const [first, second] = SHARDS.map(samplesOf) as [SampleOfPlan[], SampleOfPlan[]];
  const changed = (change: object): ShardPlan[] => {
    const files = [{ ...first[0]!.files[0]!, ...change }];
    return [planDataset([{ ...first[0]!, ...change, files }, first[1]!]), planDataset(second)];
  };
  const others = [{ path: 'cat/3.jpg' }, { bytes: 501 }, { mtimeMs: 9 }, { cls: 1 }, { label: 'x' }].map((c) =>
    changed(c),
  );
  others.push([SHARDS[1]!, SHARDS[0]!], [SHARDS[0]!], [planDataset([...first, ...second])]);
  for (const other of others) expect(encodePlan(FACTS, other).digest).not.toBe(digest);
  expect(encodePlan({ ...FACTS, options: { seed: 2 } }, SHARDS).digest).not.toBe(digest);
  expect(encodePlan({ ...FACTS, classes: ['dog', 'cat'] }, SHARDS).digest).not.toBe(digest);
  expect(encodePlan({ ...FACTS, source: '/moved/', skippedFiles: 0 }, SHARDS).digest).toBe(digest);
});

test('a record with a changed byte, or a truncated record, is always rejected', () => {
  writePlanRecord(path, FACTS, SHARDS);
  const whole = readFileSync(path);
  const readAll = (bytes: Uint8Array) => {
    writeFileSync(path, bytes);
    const { shards } = readPlanHeader(path);
    const fd = openSync(path, 'r');
    try {
      for (const place of shards) readShardPlan(fd, place, path);
    } finally {
      closeSync(fd);
    }
  };
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, bits) => {
      const bytes = Buffer.from(whole);
      bytes[at]! ^= bits;
      // The first bytes only identify the kind of file.
      if (at < 'shardtool plan\n'.length) return;
      expect(() => readAll(bytes)).toThrow(PlanRecordError);
    }),
  );
  fc.assert(
    fc.property(fc.nat(whole.length - 1), (length) => {
      expect(() => readAll(whole.subarray(0, length))).toThrow(PlanRecordError);
    }),
  );
});
