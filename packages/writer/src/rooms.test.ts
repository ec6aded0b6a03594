import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('.', import.meta.url));
/** In the order in which a file goes through them; beside them stand the rooms that may use all of these. */
const WAY = ['source', 'plan', 'shard', 'output', 'pack'];

test('a room imports from those that a file went through before, and from none that it comes to later', () => {
  const backwards = WAY.flatMap((room, place) =>
    importsOf(room)
      .filter(({ from }) => !WAY.slice(0, place + 1).includes(from))
      .map(({ file, from }) => `${room}/${file} imports from ${from}`),
  );
  expect(backwards).toEqual([]);
});

/** What the files of a room import from other rooms, types included. */
function importsOf(room: string): { file: string; from: string }[] {
  const files = readdirSync(path.join(SOURCE, room)).filter((file) => !file.endsWith('.test.ts'));
  return files.flatMap((file) => {
    const text = readFileSync(path.join(SOURCE, room, file), 'utf8');
    const rooms = [...text.matchAll(/from '\.\.\/([a-z-]+)\//g)].map(([, from]) => from!);
    return rooms.filter((from) => ![room, 'crew', 'dedupe'].includes(from)).map((from) => ({ file, from }));
  });
}
