import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const PACKAGES = readdirSync('packages');

type Imports = Map<string, ReadonlySet<string>>;

test.each(PACKAGES)('folders of %s import without cycles', (name) => {
  expect(circlesOf(importsOfRooms(path.join('packages', name, 'src')))).toEqual([]);
});

test('folders of the loader import without cycles, from device down to ring', () => {
  const imports = importsOfRooms('packages/reader/src/loader');
  const isFolder = (room: string) => existsSync(path.join('packages/reader/src/loader', room));
  const folders: Imports = new Map(
    [...imports]
      .filter(([room]) => isFolder(room))
      .map(([room, others]) => [room, new Set([...others].filter((other) => isFolder(other)))]),
  );
  expect(folders.size).toBeGreaterThan(6);
  expect(circlesOf(folders)).toEqual([]);
});

test('packages import without cycles', () => {
  const imports: Imports = new Map(PACKAGES.map((name) => [nameOf(name), importsOfPackage(name)]));
  expect([...imports.values()].filter((others) => others.size > 0).length).toBeGreaterThan(4);
  expect(circlesOf(imports)).toEqual([]);
});

test('a cycle is detected', () => {
  const imports: Imports = new Map([
    ['a', new Set(['b'])],
    ['b', new Set(['c'])],
    ['c', new Set(['a'])],
  ]);
  expect(circlesOf(imports)).toHaveLength(3);
});

function circlesOf(imports: Imports): string[] {
  return [...imports].flatMap(([room, others]) => {
    const circle = [...others].filter((other) => reach(imports, other).has(room));
    return circle.map((other) => `${room} imports from ${other}, which leads back to ${room}`);
  });
}

/** For each folder or file of a package, the others that it imports from, including type imports. */
function importsOfRooms(source: string): Imports {
  const imports = new Map<string, Set<string>>();
  for (const file of sourcesOf(source)) {
    const room = roomOf(file);
    const others = imports.get(room) ?? new Set();
    imports.set(room, others);
    for (const [, specifier] of readFileSync(path.join(source, file), 'utf8').matchAll(IMPORT)) {
      if (!specifier!.startsWith('.')) continue;
      const other = roomOf(path.join(path.dirname(file), specifier!));
      if (other !== room) others.add(other);
    }
  }
  return imports;
}

/** The packages of this repository that a package imports, except packages that it only tries to load. */
function importsOfPackage(name: string): ReadonlySet<string> {
  const source = path.join('packages', name, 'src');
  const found = sourcesOf(source).flatMap((file) =>
    [...readFileSync(path.join(source, file), 'utf8').matchAll(IMPORT)].map(([, specifier]) => specifier!),
  );
  const packages = PACKAGES.map(nameOf).filter((other) => other !== nameOf(name));
  return new Set(packages.filter((other) => found.some((one) => one === other || one.startsWith(`${other}/`))));
}

/** An import of a module by its name, static or dynamic. */
const IMPORT = /(?:from|import\()\s*'([^']+)'/g;

function nameOf(folder: string): string {
  return folder === 'cli' ? 'shardtool' : `@shardtool/${folder}`;
}

function reach(imports: Imports, from: string): ReadonlySet<string> {
  const reached = new Set([from]);
  for (const room of reached) for (const next of imports.get(room) ?? []) reached.add(next);
  return reached;
}

function roomOf(file: string): string {
  const [room, ...within] = file.split(path.sep);
  return within.length > 0 ? room! : room!.replace(/\.[cjt]*s$/, '');
}

function sourcesOf(source: string): string[] {
  return readdirSync(source, { encoding: 'utf8', recursive: true }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.endsWith('.d.ts'),
  );
}
