import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bill } from '../scripts/release/bill.mjs';

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses: readonly object[];
  readonly components?: readonly Component[];
}

test('the bill of a release names our packages, what is bundled into each, and what an installation brings', () => {
  const text = bill(process.cwd(), ['base', 'storage', 'format', 'reader', 'cuda', 'writer', 'cli']);
  const { components } = JSON.parse(text) as { components: Component[] };
  const [, storage] = components;
  expect(components.slice(0, 7).map(({ name }) => name)).toEqual([
    '@shardtool/base',
    '@shardtool/storage',
    '@shardtool/format',
    '@shardtool/reader',
    '@shardtool/cuda',
    '@shardtool/writer',
    'shardtool',
  ]);
  expect(storage!.components!.map(({ name }) => name)).toContain('@smithy/signature-v4');
  expect(components[3]!.components!.map(({ name }) => name)).toContain('libjpeg-turbo');
  const sharp = components.find(({ name }) => name === 'sharp')!;
  expect(sharp.purl).toBe(`pkg:npm/sharp@${sharp.version}`);
  const flat = components.flatMap((part) => [part, ...(part.components ?? [])]);
  expect(flat.filter(({ licenses, version }) => licenses.length !== 1 || version === '')).toEqual([]);
  expect(bill(process.cwd(), ['base', 'storage', 'format', 'reader', 'cuda', 'writer', 'cli'])).toBe(text);
});

test('versions of packages for npm and for Python are one', () => {
  const { version } = JSON.parse(readFileSync('packages/cli/package.json', 'utf8')) as { version: string };
  expect(readFileSync('python/pyproject.toml', 'utf8')).toContain(`\nversion = "${version}"\n`);
});
