import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSource } from '@shardtool/format';
import { afterAll, expect, test } from 'vitest';
import { PackedFolder } from './packed-folder.js';
import { recoverSample } from './recover-sample.js';

const folder = mkdtempSync(join(tmpdir(), 'recover-sample-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** More than is kept in memory. */
const BYTES = (65 << 20) + 7;

function write(name: string, beginning: string): string {
  const path = join(folder, name);
  writeFileSync(path, beginning);
  truncateSync(path, BYTES);
  return path;
}

test('a large field whose checksum is lost is verified only by an equal source file', async () => {
  const shard = write('000000.tar', 'first');
  const source = await openSource(shard);
  const recover = () => {
    const field = { name: 'bin', places: [{ name: 'bin', offset: 0, bytes: BYTES }], crc32: null, bytes: BYTES };
    const sample = { key: 'a', isKeyProven: true, row: 0, fields: [{ ...field, isInteger: false }] };
    const loadChecker = () => Promise.reject(new Error('not needed'));
    const from = { shard: '000000.tar', source, packed: new PackedFolder(folder), loadChecker };
    return recoverSample(sample, { source: '', cls: -1 }, { ...from, decode: false, maxSampleBytes: BYTES });
  };
  try {
    write('a.bin', 'first');
    expect(await recover()).toMatchObject({ unproven: [], isRestored: false });
    write('a.bin', 'other');
    expect(await recover()).toMatchObject({ unproven: ['bin'], isRestored: false });
  } finally {
    await source.close();
  }
});
