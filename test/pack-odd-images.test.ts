import { readFileSync } from 'node:fs';
import path from 'node:path';
import { kindOfField } from '@shardtool/format';
import { pack } from '@shardtool/writer';
import { beforeAll, expect, test } from 'vitest';
import { newFolder, type PackedSample, samplesOf } from './pack-workbench.js';

const FOLDER = 'test/fixtures/odd-images';

/** The column "pack" of EXPECTED.md, one entry per file. */
const EXPECTED = readFileSync(path.join(FOLDER, 'EXPECTED.md'), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => /\.\w+$/.test(cells[1] ?? ''))
  .flatMap((cells) => cells[1]!.split(', ').map((file) => [file, cells[2]!] as const));

/** The expected messages for files that the table calls "out". */
const REASONS: Readonly<Record<string, string>> = {
  '4.3 billion pixels, limit 178 million': 'claims 65500x65500 pixels, more than the limit of 178',
  'no width': 'no width',
  'empty file': 'empty file',
  'not an image': 'is not an image',
  'header cut': 'has a truncated header',
};

let samples: ReadonlyMap<string, PackedSample>;
let reasons: ReadonlyMap<string, string>;
let renamed: number;

beforeAll(async () => {
  const output = newFolder();
  ({ renamed } = await pack(FOLDER, output, { workers: 1, onBad: 'quarantine', maxBad: 1, exclude: ['*.md'] }));
  samples = new Map((await samplesOf(output)).map((sample) => [sample.source, sample]));
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  reasons = new Map(lines.map((line) => JSON.parse(line)).map(({ path: file, reason }) => [file, reason]));
});

test('the table lists every file, and each is either packed or quarantined', () => {
  expect(EXPECTED).toHaveLength(30);
  expect([...samples.keys(), ...reasons.keys()].sort()).toEqual(EXPECTED.map(([file]) => file).sort());
});

test.each(EXPECTED.filter(([, cell]) => cell.startsWith('out')))('%s is not packed: %s', (file, cell) => {
  expect(reasons.get(file)).toContain(REASONS[cell.replace('out: ', '')]);
});

test.each(EXPECTED.filter(([, cell]) => cell.startsWith('in')))('%s is packed: %s', (file, cell) => {
  const { fields, size, orientation } = samples.get(file)!;
  const [field] = Object.keys(fields);
  expect(Object.keys(fields)).toHaveLength(1);
  expect(fields[field!]).toBe(readFileSync(path.join(FOLDER, file), 'latin1'));
  const [, kind] = /^in, (\w+) \d+x/.exec(cell) ?? [];
  if (kind !== undefined) expect(kindOfField(field!)).toBe(kind);
  const [, width, height] = /(\d+)x(\d+)/.exec(`${cell} ${file}`) ?? [];
  if (width !== undefined) expect(size).toEqual([Number(width), Number(height)]);
  expect(Math.min(...size)).toBeGreaterThan(0);
  expect(orientation).toBe(Number(/orientation (\d)/.exec(cell)?.[1] ?? 1));
  const named = /\(field (\w+)\)/.exec(cell)?.[1] ?? path.extname(file).slice(1);
  expect(field).toBe(named);
});

test('the two misnamed images are counted', () => {
  expect(EXPECTED.filter(([, cell]) => cell.includes('with a warning'))).toHaveLength(2);
  expect(renamed).toBe(2);
});
