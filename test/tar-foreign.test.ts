import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UnsupportedEntryError } from '@shardtool/base';
import { openSource, type Source, tar } from '@shardtool/format';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('fixtures/tar/', import.meta.url));

interface Grouping {
  samples: { key: string; fields: Record<string, string> }[];
  skipped: string[];
}

const expected: Record<string, Grouping> = JSON.parse(readFileSync(`${folder}expected.json`, 'utf8'));

/** Keys, the sha256 of each field, and skipped entries, as found by shardtool. */
async function group(path: string): Promise<Grouping> {
  const file = readFileSync(path);
  const source = await openSource(path);
  const samples: Grouping['samples'] = [];
  const skipped: string[] = [];
  for await (const found of tar.samples(source, (name) => skipped.push(name))) {
    for (const { key, fields } of found) {
      const hashes = fields.map(({ name, offset, bytes }) => [name, sha256(file.subarray(offset, offset + bytes))]);
      samples.push({ key, fields: Object.fromEntries(hashes) });
    }
  }
  await source.close();
  return { samples, skipped };
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const archives = readdirSync(folder).filter((name) => name.endsWith('.tar'));
const refused = archives.filter((name) => name.startsWith('refused-'));

const linked = archives.filter((name) => name.startsWith('links-'));

test.each(archives.filter((name) => !refused.includes(name) && !linked.includes(name)))(
  '%s is read as by webdataset',
  async (name) => {
    expect(await group(folder + name)).toEqual(expected[name]);
  },
);

test.each(refused)('%s is rejected, and the error names the kind of entry', async (name) => {
  const kind = name.replace('refused-', '').replace(/-(gnu|pax).*|\.tar$/g, '');
  const failure = await group(folder + name).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UnsupportedEntryError);
  expect((failure as Error).message.toLowerCase()).toContain(kind.replaceAll('-', ' '));
});

test.each(linked)('links in %s are skipped, as by webdataset', async (name) => {
  const { samples, skipped } = await group(folder + name);
  expect([samples.map(({ key }) => key), skipped]).toEqual([
    ['a'],
    [name === 'links-hard.tar' ? 'hard.jpg' : 'soft.jpg'],
  ]);
});

test.each(['gnu', 'posix'])('a file of 9 GiB, as announced by GNU tar --format=%s, is scanned', async (format) => {
  const head = readFileSync(`${folder}nine-gib-${format}.header`);
  const bytes = 9 * 2 ** 30;
  const source: Source = {
    location: 'nine-gib.tar',
    size: head.length + bytes + 1024,
    readAt: async (offset, target) => {
      target.fill(0);
      head.copy(target, 0, Math.min(offset, head.length));
      return target.length;
    },
    close: async () => {},
  };
  const samples = [];
  for await (const found of tar.samples(source)) samples.push(...found);
  expect(samples).toEqual([
    { key: 'big', offset: 0, bytes: head.length + bytes, fields: [{ name: 'bin', offset: head.length, bytes }] },
  ]);
});
