import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOURCE = fileURLToPath(new URL('.', import.meta.url));

test('rooms import downwards only: no room is reached again from what it imports', () => {
  const imports = importsOfRooms();
  const circular = [...imports.keys()].flatMap((room) => {
    const circle = [...imports.get(room)!].filter((other) => reach(imports, other).has(room));
    return circle.map((other) => `${room} imports from ${other}, which leads back to ${room}`);
  });
  expect(circular).toEqual([]);
});

/** For each room the others that it imports from, type imports included. A room is a folder, or a file beside them. */
function importsOfRooms(): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>();
  for (const file of readdirSync(SOURCE, { encoding: 'utf8', recursive: true }).filter(isSource)) {
    const room = roomOf(file);
    const others = imports.get(room) ?? new Set();
    imports.set(room, others);
    const text = readFileSync(path.join(SOURCE, file), 'utf8');
    for (const [, specifier] of text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
      const other = roomOf(path.join(path.dirname(file), specifier!));
      if (other !== room) others.add(other);
    }
  }
  return imports;
}

function reach(imports: ReadonlyMap<string, ReadonlySet<string>>, from: string): ReadonlySet<string> {
  const reached = new Set([from]);
  for (const room of reached) for (const next of imports.get(room) ?? []) reached.add(next);
  return reached;
}

function roomOf(file: string): string {
  const [room, ...within] = file.split(path.sep);
  return within.length > 0 ? room! : room!.replace(/\.[jt]s$/, '');
}

function isSource(file: string): boolean {
  return file.endsWith('.ts') && !file.endsWith('.test.ts');
}
