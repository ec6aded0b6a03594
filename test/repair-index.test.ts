import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  encodeShardIndex,
  fieldPayload,
  type LayoutName,
  readManifest,
  readShardIndex,
  type ShardIndex,
} from '@shardtool/format';
import { createChecker } from '@shardtool/reader';
import { type PackOptions, pack } from '@shardtool/writer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeFooter } from '#format/parquet/footer';
import { type RepairedShard, repairShard } from '#writer/repair/repair-shard';
import { packedShards } from '#writer/shard/dataset-shards';
import { emptyFolder } from './datasets.js';
import { JPEG, jpeg, newFolder, PNG, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

/** Samples of all kinds: large and small values, fields and labels that only some have, classes in fields of two types. */
const SAMPLES = 14;
const large = readFileSync('test/fixtures/odd-images/gray.jpg');
const images = Array.from({ length: SAMPLES }, (_, i) => ({
  file: `${i % 2 ? 'odd' : 'even'}/${i}.jpg`,
  bytes: i % 3 === 0 ? Buffer.concat([large, Buffer.from([i])]) : jpeg(`number ${i}`),
}));
const labels = images.map(({ file }, i) => `${file},${i * 1.5},${i % 4 === 0 ? '' : `name ${i}`},${i % 2 === 0}`);
const source = tree({
  ...Object.fromEntries(images.map(({ file, bytes }) => [file, bytes])),
  'even/4.json': '{"four": 4}',
  'even/4.seg.png': PNG,
  'odd/5.txt': 'five',
  'labels.csv': `path,score,name,flag\n${labels.join('\n')}\n`,
});
const options: PackOptions = { fields: ['seg.png'], labels: path.join(source, 'labels.csv') };

const layouts: Readonly<Record<string, PackOptions & { format: LayoutName }>> = {
  tar: { format: 'tar' },
  msgpack: { format: 'msgpack' },
  lmdb: { format: 'lmdb' },
  'lmdb of images': { format: 'lmdb', lmdbValues: 'image', exclude: ['**/*.{json,txt,seg.png}'], fields: [] },
};

/** All values of one sample: fields as latin1, and the values that only the index has. */
type Values = Readonly<Record<string, unknown>>;

function valuesOf(shard: Uint8Array, index: ShardIndex): Map<string, Values> {
  const all = new Map<string, Values>();
  for (let row = 0; row < index.samples; row++) {
    const values: Record<string, unknown> = { source: index.source[row], cls: index.cls[row] };
    values.size = [index.width[row], index.height[row], index.orientation[row]];
    for (const [name, { offset, bytes, msgpack }] of index.fields) {
      if (offset[row] === -1) continue;
      const stored = shard.subarray(offset[row]!, offset[row]! + bytes[row]!);
      values[`field ${name}`] = Buffer.from(fieldPayload(stored, msgpack?.[row] === 1)).toString('latin1');
    }
    for (const [name, column] of index.columns) values[`label ${name}`] = column[row];
    all.set(index.key[row]!, values);
  }
  return all;
}

/** SHARDTOOL_ROUNDS=60 tries more cases of damage, and each kind on each page. */
const ARE_ALL_TRIED = process.env.SHARDTOOL_ROUNDS !== undefined;

const checker = createChecker({ maxPixels: 1e8 });

describe.each(Object.keys(layouts))('%s', async (name) => {
  const folder = newFolder();
  await pack(source, folder, { workers: 1, ...options, ...layouts[name] });
  const manifest = await readManifest(folder);
  const shard = (await packedShards(folder, manifest)).shards[0]!;
  const shardBytes = readFileSync(shard.path);
  const indexBytes = readFileSync(shard.indexPath!);
  const index = await readShardIndex(shard.indexPath!);
  const before = valuesOf(shardBytes, index);
  const pages = decodeFooter(indexBytes).chunks.map(({ name: column, offset, bytes }) => {
    return { column, from: offset, to: offset + bytes };
  });

  /** Repairs the shard in a folder with the two given files, and returns what a reader finds afterwards. */
  async function repaired(damagedShard: Uint8Array, damagedIndex: Uint8Array) {
    const place = emptyFolder();
    const work = path.join(place, 'work');
    mkdirSync(work);
    const here = (await packedShards(place, manifest)).shards[0]!;
    mkdirSync(path.dirname(here.path), { recursive: true });
    writeFileSync(here.path, damagedShard);
    writeFileSync(here.indexPath!, damagedIndex);
    const setting = {
      workFolder: work,
      columnTypes: new Map(manifest.columns.map((column) => [column.name, column.type])),
      otherIndexes: [],
      requiredFields: manifest.fields.filter(({ samples }) => samples === SAMPLES).map((field) => field.name),
      optionalFields: manifest.fields.filter(({ samples }) => samples < SAMPLES).map((field) => field.name),
      hasClasses: true,
      isManifestWhole: true,
      source: null,
      decode: false,
      maxSampleBytes: 2 ** 30,
    };
    const report = await repairShard(here, setting, () => checker);
    const newIndex = path.join(work, path.basename(here.indexPath!));
    const newShard = report.isFileNew ? path.join(work, manifest.shards[0]!.file) : here.path;
    if (report.record === null) return { report, after: new Map<string, Values>(), newIndex: null };
    const read = await readShardIndex(newIndex);
    return { report, after: valuesOf(readFileSync(newShard), read), newIndex: readFileSync(newIndex) };
  }

  /** No value is wrong, and missing values are reported. */
  function expectTrue({ report, after }: { report: RepairedShard; after: Map<string, Values> }, what: string): void {
    const lost = new Set(report.lostColumns);
    const doubtful = new Map(report.unproven.map(({ key, reason }) => [key, reason]));
    expect(after.size + report.takenOut.filter(({ reason }) => !/not in its index/.test(reason)).length, what).toBe(
      SAMPLES,
    );
    for (const [key, values] of after) {
      const packed = before.get(key);
      if (packed === undefined) {
        expect(doubtful.get(key), `${what}: ${key}`).toMatch(/its key/);
        continue;
      }
      for (const value of new Set([...Object.keys(packed), ...Object.keys(values)])) {
        const column = value.replace(/^(label|field) /, '');
        const isForgotten = lost.has(column) || (value.startsWith('label') && lost.has(column));
        const isDoubtful = doubtful.get(key)?.includes(`field "${column}"`) ?? false;
        if (isForgotten || isDoubtful) continue;
        expect(values[value], `${what}: ${key}, ${value}; lost ${[...lost]}`).toEqual(packed[value]);
      }
    }
  }

  /** The shard is undamaged: it is kept, and only paths, labels and a class that only the index has can be lost. */
  async function expectIndexAlone(damagedIndex: Uint8Array, what: string): Promise<RepairedShard> {
    const result = await repaired(shardBytes, damagedIndex);
    expect(result.report, what).toMatchObject({ isFileNew: false, takenOut: [], unproven: [] });
    expect(result.after.size, what).toBe(SAMPLES);
    const nowhereElse = ['source', 'score', 'name', 'flag', ...(name === 'lmdb of images' ? ['cls'] : [])];
    expect(nowhereElse, what).toEqual(expect.arrayContaining([...result.report.lostColumns]));
    expectTrue(result, what);
    if (result.report.lostColumns.length === 0) expect(result.newIndex!.equals(indexBytes), what).toBe(true);
    return result.report;
  }

  /** Flips a bit in the middle of the image of the sample in a row. */
  function shardWithDamage(row: number): Buffer {
    const damaged = Buffer.from(shardBytes);
    const { offset, bytes } = index.fields.get('jpg')!;
    damaged[offset[row]! + (bytes[row]! >> 1)]! ^= 4;
    return damaged;
  }

  test('an intact index is rebuilt with the same bytes', async () => {
    await expectIndexAlone(indexBytes, 'whole');
    expect(encodeShardIndex(index)).toEqual(Uint8Array.from(indexBytes));
  });

  test('if any page of the index is damaged, no value is wrong, and lost columns are reported', async () => {
    for (const { column, from, to } of pages) {
      const edits: Readonly<Record<string, Buffer>> = {
        'zeros over its header and what is before': Buffer.from(indexBytes).fill(0, Math.max(0, from - 16), from + 16),
        'a bit of its header': withBit(indexBytes, from + 6),
        'a bit of its values': withBit(indexBytes, to - 1),
        'a byte more': Buffer.concat([indexBytes.subarray(0, to - 2), Buffer.from([7]), indexBytes.subarray(to - 2)]),
        'a byte less': Buffer.concat([indexBytes.subarray(0, to - 2), indexBytes.subarray(to - 1)]),
      };
      await Promise.all(
        Object.entries(edits)
          .filter(([how]) => ARE_ALL_TRIED || /^zeros|values$/.test(how))
          .map(async ([how, damaged]) => {
            const what = `${how} of ${column}`;
            const { lostColumns } = await expectIndexAlone(damaged, what);
            if (how.startsWith('a bit') && column !== 'cls') {
              const isKnownElsewhere = !['source', 'score', 'name', 'flag'].includes(column);
              expect(lostColumns, what).toEqual(isKnownElsewhere ? [] : [column]);
            }
            if (!how.startsWith('zeros')) return;
            expectTrue(await repaired(shardWithDamage(3), damaged), `${what}, and a damaged image`);
          }),
      );
    }
  });

  test('if any bytes of the index are damaged, with or without the shard, no value is wrong', async () => {
    const damage = fc.record({
      at: fc.nat(9999).map((part) => part / 10_000),
      length: fc.oneof({ weight: 2, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 400 })),
      how: fc.constantFrom('flip', 'zero', 'remove', 'insert'),
    });
    const list = fc.array(damage, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(list, fc.option(list, { freq: 2 }), async (ofIndex, ofShard) => {
        const what = JSON.stringify({ ofIndex, ofShard });
        const damagedIndex = ofIndex.reduce(withDamage, indexBytes);
        if (ofShard === null) await expectIndexAlone(damagedIndex, what);
        else expectTrue(await repaired(ofShard.reduce(withDamage, shardBytes), damagedIndex), what);
      }),
      { numRuns: 15 * TIMES, endOnFailure: true },
    );
  }, 60_000);

  test('no value of a damaged footer is trusted', async () => {
    const footer = indexBytes.length - 8 - indexBytes.readUInt32LE(indexBytes.length - 8);
    for (let at = footer; at < indexBytes.length; at += 97) {
      await expectIndexAlone(withBit(indexBytes, at), `a bit at ${at}`);
    }
  });
});

interface RangeDamage {
  readonly at: number;
  readonly length: number;
  readonly how: string;
}

function withDamage(bytes: Buffer, { at, length, how }: RangeDamage): Buffer {
  const from = Math.floor(at * bytes.length);
  const to = Math.min(bytes.length, from + length);
  const [head, hit, tail] = [bytes.subarray(0, from), bytes.subarray(from, to), bytes.subarray(to)];
  if (how === 'remove') return Buffer.concat([head, tail]);
  if (how === 'insert') return Buffer.concat([head, Buffer.alloc(to - from, 7), hit, tail]);
  return Buffer.concat([
    head,
    how === 'zero' ? Buffer.alloc(hit.length) : Buffer.from(hit).map((byte) => byte ^ 0x55),
    tail,
  ]);
}

function withBit(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at]! ^= 1;
  return changed;
}

test('the test data has the expected sizes', () => {
  expect(existsSync(source)).toBe(true);
  expect(large.length).toBeGreaterThan(2048);
  expect(JPEG.length).toBeLessThan(2048);
});
