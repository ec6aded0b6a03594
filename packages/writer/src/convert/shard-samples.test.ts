import { closeSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { FileChangedError } from '@shardtool/base';
import { layoutOf, type OutputLayout } from '@shardtool/format';
import { expect, onTestFinished, test } from 'vitest';
import { openShardSamples } from './shard-samples.js';

/** Writes a tar of two samples without an index. */
async function tarWithoutIndex() {
  const folder = mkdtempSync(path.join(tmpdir(), 'shard-samples-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'a.tar');
  const layout = (await layoutOf('tar')) as OutputLayout;
  const fd = openSync(file, 'wx');
  const writer = layout.createWriter(fd, 'a.tar');
  for (const key of ['one', 'two']) {
    const [place] = writer.begin(key, [{ name: 'cls', bytes: 1 }]);
    place!.set(Buffer.from('7'));
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  const shard = {
    name: 'a.tar',
    stem: 'a',
    path: file,
    format: 'tar',
    bytes: statSync(file).size,
    indexPath: null,
    cropsPath: null,
    record: null,
  } as const;
  return { file, shard, target: { layout, columnTypes: new Map(), maxSampleBytes: 1 << 20 } };
}

test('a shard without an index that is changed while it is read ends with an error', async () => {
  const { file, shard, target } = await tarWithoutIndex();
  const readAll = async (change: () => void) => {
    const samples = await openShardSamples(shard, target);
    onTestFinished(() => samples.close());
    const found: [string, number][] = [];
    for await (const { key, facts } of samples.read(false)) {
      found.push([key, facts.cls]);
      change();
    }
    return found;
  };
  expect(await readAll(() => undefined)).toEqual([
    ['one', 7],
    ['two', 7],
  ]);
  await expect(readAll(() => utimesSync(file, 1, 1))).rejects.toThrow(FileChangedError);
});

test('a shard without an index that is cut short before its samples are read has changed: it has no index to restore', async () => {
  const { file, shard, target } = await tarWithoutIndex();
  const samples = await openShardSamples(shard, target);
  onTestFinished(() => samples.close());
  truncateSync(file, 1024);
  await expect(samples.read(false).next()).rejects.toThrow(`${file} has changed while it was converted`);
});
