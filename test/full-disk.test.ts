import { spawnSync } from 'node:child_process';
import { readdirSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SampleSizeError } from '@shardtool/base';
import { convert, DiskFullError, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, packedSmall } from './datasets.js';
import { digestsOf, jpeg, newFolder, smallDisk, tree } from './pack-workbench.js';

const place = emptyFolder();
const source = tree({ 'a/1.jpg': jpeg(1), 'b/2.jpg': jpeg(2) });
const packed = newFolder();
await pack(source, packed);
writeFileSync(path.join(place, 'labels.csv'), 'key,class\na/1,b\n');

/** A shell in which commands cannot write to any file, as on a full disk. */
function withoutRoom(...words: string[]) {
  const command = 'ulimit -f 0; exec "$0" packages/cli/lib/main.js "$@"';
  return spawnSync('sh', ['-c', command, process.execPath, ...words], { encoding: 'utf8', timeout: 60_000 });
}

test.runIf(process.platform === 'linux').each([
  ['pack', source, path.join(place, 'new')],
  ['convert', packed, path.join(place, 'converted')],
  ['overlay', 'add', packed, 'other', '--labels', path.join(place, 'labels.csv')],
  ['split', packed, '--val', '0.5'],
  ['merge', packed, packed, '--output', path.join(place, 'both.json')],
  ['preview', packed, '--output', path.join(place, 'grid.png')],
])('on a full disk %s ends with one sentence, and leaves no partial files', (...words) => {
  const before = readdirSync(place);
  const { status, stderr } = withoutRoom(...words);
  expect(stderr).toMatch(/^shardtool: .*(no larger files|no space left|cannot be used|EFBIG|ENOSPC).*\.\n$/);
  expect(stderr.split('\n')).toHaveLength(2);
  expect(status).toBe(1);
  const left = readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) => !before.includes(name));
  // A folder that was created may remain, without a file in it.
  expect(left.filter((name) => name.includes('.'))).toEqual([]);
  expect(
    readdirSync(packed, { recursive: true, encoding: 'utf8' }).filter((name) => /other|split|part/.test(name)),
  ).toEqual([]);
});

test('a resumed conversion needs space only for the rest, and says so', async ({ skip }) => {
  const shards = await packedSmall(
    { samples: 8, bytes: (sample) => (sample === 4 ? 250_000 : 200_000) },
    { maxShardSamples: 1, shuffle: false },
  );
  const { folder, isMounted, resize, unmount } = smallDisk(4000);
  if (!isMounted) skip();
  const output = path.join(folder, 'shards');
  const options = { format: 'msgpack', workers: 1 } as const;
  /** Leaves this many bytes free on the disk. */
  const leave = (bytes: number) => {
    const { blocks, bavail, bsize } = statfsSync(folder);
    resize(Math.round(((blocks - bavail) * bsize + bytes) / 1024));
  };
  try {
    leave(1_000_000);
    await expect(convert(shards, output, options)).rejects.toThrow(
      /^The conversion needs .* has only .* free; free some space, or choose a folder on/,
    );
    leave(4_000_000);
    // The fifth shard does not fit.
    await expect(convert(shards, output, { ...options, maxSampleBytes: 220_000 })).rejects.toBeInstanceOf(
      SampleSizeError,
    );
    leave(500_000);
    await expect(convert(shards, output, options)).rejects.toBeInstanceOf(DiskFullError);
    await expect(convert(shards, output, options)).rejects.toThrow(/^The rest of the conversion needs /);
    leave(1_200_000);
    expect(await convert(shards, output, options)).toMatchObject({ samples: 8 });
    const alone = newFolder();
    await convert(shards, alone, options);
    expect(digestsOf(output)).toEqual(digestsOf(alone));
  } finally {
    unmount();
  }
});
