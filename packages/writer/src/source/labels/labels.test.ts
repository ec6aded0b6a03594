import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LabelsError } from '../../errors.js';
import { sourceFilesOf } from '../source-files.js';
import { readLabels, readPackedLabels, rowsOfFiles } from './labels.js';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'labels-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function files(paths: string[]) {
  return sourceFilesOf(paths, { memoryBytes: 1e6, folder: root });
}

async function labels(text: string, name = 'labels.csv') {
  writeFileSync(join(root, name), text);
  return readLabels(join(root, name), root);
}

test('a CSV has paths, classes and columns, with quotes, commas and a byte order mark', async () => {
  const table = await labels('\ufeffpath,class,caption,score\r\na.jpg,cat,"one, ""two""",1.5\r\n"b, c.jpg",dog,,2\r\n');
  expect(table.path).toEqual(['a.jpg', 'b, c.jpg']);
  expect(table.cls).toEqual(['cat', 'dog']);
  expect(table.columns).toEqual(
    new Map<string, unknown>([
      ['caption', ['one, "two"', null]],
      ['score', [1.5, 2]],
    ]),
  );
});

test.each([
  ['filename,label\nb.jpg,dog\na.jpg,cat\n'],
  ['label,image\ndog,b.jpg\ncat,a.jpg\n'],
  ['id,label\nb,dog\na,cat\n'],
  ['image_id,label\nb,dog\na,cat\n'],
])('the columns of other software are known: %j', async (text) => {
  const table = await labels(text);
  expect(table.cls).toEqual(['dog', 'cat']);
  expect([...rowsOfFiles(files(['a.jpg', 'a.json', 'b.jpg']), table)]).toEqual([1, -1, 0]);
});

test('a name without an extension that fits two images, or none, is an error with its line', async () => {
  const table = await labels('id,label\nb,dog\na,cat\n');
  expect(() => rowsOfFiles(files(['a.jpg', 'a.png', 'b.jpg']), table)).toThrow(
    'labels.csv:3 names a, which may be a.jpg or a.png; add the extension',
  );
  expect(() => rowsOfFiles(files(['a.jpg', 'b.txt']), table)).toThrow('labels.csv:2 names b, which is not among');
});

test('JSON Lines keep their types; missing values are null, and nested values become JSON', async () => {
  const table = await labels(
    '{"path":"a.jpg","class":3,"id":"007","ok":true}\n\n{"path":"b.jpg","box":[1,2],"n":4}\n',
    'labels.jsonl',
  );
  expect(table.cls).toEqual(['3', '']);
  expect(table.columns).toEqual(
    new Map<string, unknown>([
      ['id', ['007', null]],
      ['ok', [true, null]],
      ['box', [null, '[1,2]']],
      ['n', [null, 4]],
    ]),
  );
});

test('a CSV column is a number only if every cell reads back as it was written', async () => {
  const { columns } = await labels('path,zip,n,mixed\na.jpg,01234,-2e3,1\nb.jpg,99999,0.5,x\n');
  expect(columns.get('zip')).toEqual(['01234', '99999']);
  expect(columns.get('n')).toEqual([-2000, 0.5]);
  expect(columns.get('mixed')).toEqual(['1', 'x']);
});

test('integers beyond 2^53 in JSON Lines keep their digits, and become a text column', async () => {
  const { columns } = await labels(
    '{"path":"a.jpg","big":9007199254740993,"nested":{"ids":[1234567890123456789]}}\n{"path":"b.jpg","big":7}\n',
    'labels.jsonl',
  );
  expect(columns.get('big')).toEqual(['9007199254740993', '7']);
  expect(columns.get('nested')).toEqual(['{"ids":[1234567890123456789]}', null]);
});

test('a CSV column of numbers stays one, however many digits Python writes', async () => {
  const { columns } = await labels(
    'path,score,time,id\na.jpg,0.30000000000000004,1700000000123456,9007199254740993\nb.jpg,-1.5e-300,-9007199254740991,1\n' +
      'c.jpg,1.000000000000000000e+00,0,2\n',
  );
  expect(columns.get('score')).toEqual([0.30000000000000004, -1.5e-300, 1]);
  expect(columns.get('time')).toEqual([1_700_000_000_123_456, -9_007_199_254_740_991, 0]);
  expect(columns.get('id')).toEqual(['9007199254740993', '1', '2']);
  expect((await labels('path,v\na.jpg,1e400\nb.jpg,1\n')).columns.get('v')).toEqual(['1e400', '1']);
});

test('nan among the numbers of a CSV column is a missing value, and inf is infinite', async () => {
  const { columns } = await labels('path,v,w,name\na.jpg,0.5,-inf,nan\nb.jpg,nan,2,inf\nc.jpg,7,Infinity,x\n');
  expect(columns.get('v')).toEqual([0.5, null, 7]);
  expect(columns.get('w')).toEqual([Number.NEGATIVE_INFINITY, 2, Number.POSITIVE_INFINITY]);
  expect(columns.get('name')).toEqual(['nan', 'inf', 'x']);
});

test('classes that a CSV has as floats become whole numbers, and empty cells mean no class', async () => {
  expect((await labels('path,class\na.jpg,10.0\nb.jpg,2.0\nc.jpg,\nd.jpg,nan\n')).cls).toEqual(['10', '2', '', '']);
  expect((await labels('path,class\na.jpg,10.5\nb.jpg,2.0\n')).cls).toEqual(['10.5', '2.0']);
  expect((await labels('path,class\na.jpg,nan\nb.jpg,cat\n')).cls).toEqual(['nan', 'cat']);
});

test('labels of packed samples must name each sample once', async () => {
  writeFileSync(join(root, 'twice.csv'), 'key,class\na,cat\nb,cat\na,dog\n');
  await expect(readPackedLabels(join(root, 'twice.csv'))).rejects.toThrow('twice.csv:4 repeats the key "a" of line 2');
});

test('paths may be absolute below the source, or start with a dot', async () => {
  expect((await labels(`path\n${root}/x/a.jpg\n./b.jpg\n`)).path).toEqual(['x/a.jpg', 'b.jpg']);
});

test('errors in a labels file name the line', async () => {
  const fault = async (text: string, line: number | undefined, message: string) => {
    await expect(labels(text)).rejects.toThrow(message);
    await expect(labels(text)).rejects.toThrow(expect.objectContaining({ line }));
    await expect(labels(text)).rejects.toThrow(LabelsError);
  };
  await fault('file,class\na.jpg,cat\n', 1, 'no column "path"');
  await fault('path,class\na.jpg\n', 2, '1 for 2 columns');
  await fault('path,class\na.jpg,"cat\n', 2, 'quote');
  await fault('path,class\n,cat\n', 2, 'no path');
  await fault('path,path\na,b\n', 1, 'twice');
  await fault('path,class\n', undefined, 'no rows');
  await fault('{"path":"a.jpg"}\n{"path":\n', 2, 'not JSON');
  await fault('{"path":"a.jpg"}\n[1]\n', 2, 'is not an object');
  await fault('path\n../a.jpg\n', undefined, 'is not below');
});

test('rows are matched to their files in any order', async () => {
  const some = files(['a.jpg', 'b.jpg', 'c.jpg', '\uff21.jpg', '\u{1f600}.jpg']);
  const rows = rowsOfFiles(some, await labels('path\n\u{1f600}.jpg\nc.jpg\na.jpg\n\uff21.jpg\n'));
  expect([...rows]).toEqual([2, -1, 1, 3, 0]);
});

test('a row whose file is missing, and a file that two rows name, throw errors with the line', async () => {
  const some = files(['a.jpg', 'b.jpg']);
  await expect(labels('path\na.jpg\nzz.jpg\n').then((table) => rowsOfFiles(some, table))).rejects.toThrow(
    'labels.csv:3 names zz.jpg',
  );
  await expect(labels('path\nb.jpg\na.jpg\nb.jpg\n').then((table) => rowsOfFiles(some, table))).rejects.toThrow(
    'labels.csv:4 repeats b.jpg, which is already in line 2',
  );
});
