import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('.', import.meta.url));
/** Folders in the order in which a file passes through them. Other folders may be imported by all of these. */
const WAY = ['source', 'plan', 'check', 'shard', 'output', 'samples', 'pack'];

test('a folder imports only from folders of earlier stages', () => {
  const backwards = WAY.flatMap((room, place) =>
    importsOf(room)
      .filter(({ from }) => !WAY.slice(0, place + 1).includes(from))
      .map(({ file, from }) => `${room}/${file} imports from ${from}`),
  );
  expect(backwards).toEqual([]);
});

/** Imports of the files of a folder (and its subfolders) from other folders, including type imports. */
function importsOf(room: string): { file: string; from: string }[] {
  const files = readdirSync(path.join(SOURCE, room), { encoding: 'utf8', recursive: true });
  return files.filter(isSource).flatMap((file) => {
    const place = path.join(SOURCE, room, file);
    const imports = [...readFileSync(place, 'utf8').matchAll(/from '(\.[^']+)'/g)];
    const rooms = imports
      .map(([, spec]) => path.relative(SOURCE, path.join(path.dirname(place), spec!)).split(path.sep))
      .flatMap(([from, ...within]) => (within.length > 0 ? [from!] : []));
    return rooms.filter((from) => ![room, 'workers', 'dedupe'].includes(from)).map((from) => ({ file, from }));
  });
}

function isSource(file: string): boolean {
  return file.endsWith('.ts') && !file.endsWith('.test.ts');
}
