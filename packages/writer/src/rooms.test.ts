import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('.', import.meta.url));
/** In the order in which a file goes through them; beside them stand the rooms that may use all of these. */
const WAY = ['source', 'plan', 'check', 'shard', 'output', 'samples', 'pack'];

test('a room imports from those that a file went through before, and from none that it comes to later', () => {
  const backwards = WAY.flatMap((room, place) =>
    importsOf(room)
      .filter(({ from }) => !WAY.slice(0, place + 1).includes(from))
      .map(({ file, from }) => `${room}/${file} imports from ${from}`),
  );
  expect(backwards).toEqual([]);
});

/** What the files of a room, and of the rooms in it, import from other rooms, types included. */
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
