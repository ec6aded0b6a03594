import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, tree } from './pack-workbench.js';

const place = emptyFolder();
const source = tree({ 'a/1.jpg': jpeg(1), 'b/2.jpg': jpeg(2) });
const packed = newFolder();
await pack(source, packed);
writeFileSync(path.join(place, 'labels.csv'), 'key,class\na/1,b\n');

/** A shell that lets its commands write nothing into any file: what is left of a disk that is full. */
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
])('on a disk without room %s ends with one sentence, and leaves nothing half', (...words) => {
  const before = readdirSync(place);
  const { status, stderr } = withoutRoom(...words);
  expect(stderr).toMatch(/^shardtool: .*(EFBIG|ENOSPC).*\.\n$/);
  expect(stderr.split('\n')).toHaveLength(2);
  expect(status).toBe(1);
  const left = readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) => !before.includes(name));
  // A folder that was made may stay, without a file in it.
  expect(left.filter((name) => name.includes('.'))).toEqual([]);
  expect(
    readdirSync(packed, { recursive: true, encoding: 'utf8' }).filter((name) => /other|split|part/.test(name)),
  ).toEqual([]);
});
