import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { bill } from '../scripts/release/bill.mjs';
import { nameRepository } from '../scripts/release/repository.mjs';
import { emptyFolder, removeFolders } from './datasets.js';

afterAll(removeFolders);

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses: readonly object[];
  readonly components?: readonly Component[];
}

test('the bill of a release lists the packages, what is bundled into each, and what an installation adds', () => {
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

test('packages for npm and for Python have the same version', () => {
  const { version } = JSON.parse(readFileSync('packages/cli/package.json', 'utf8')) as { version: string };
  expect(readFileSync('python/pyproject.toml', 'utf8')).toContain(`\nversion = "${version}"\n`);
});

test('a release records its repository in the packages for npm and for Python', () => {
  const checkout = emptyFolder();
  for (const file of ['packages/cli/package.json', 'packages/base/package.json', 'python/pyproject.toml'])
    cpSync(file, path.join(checkout, file));
  nameRepository(checkout, ['cli', 'base'], 'https://example.org/owner/shardtool.git');
  for (const name of ['cli', 'base']) {
    const file = `packages/${name}/package.json`;
    expect(JSON.parse(readFileSync(path.join(checkout, file), 'utf8'))).toEqual({
      ...JSON.parse(readFileSync(file, 'utf8')),
      homepage: 'https://example.org/owner/shardtool#readme',
      repository: { type: 'git', url: 'git+https://example.org/owner/shardtool.git', directory: `packages/${name}` },
      bugs: { url: 'https://example.org/owner/shardtool/issues' },
    });
  }
  expect(readFileSync(path.join(checkout, 'python/pyproject.toml'), 'utf8')).toBe(
    `${readFileSync('python/pyproject.toml', 'utf8')}
[project.urls]
Repository = "https://example.org/owner/shardtool"
Issues = "https://example.org/owner/shardtool/issues"
`,
  );
});

test.each(['example.org/owner/shardtool', 'https://example.org', 'https://example.org/a/b"c'])(
  'an invalid repository address is rejected: %s',
  (url) => {
    expect(() => nameRepository(emptyFolder(), [], url)).toThrow('pass the address of the repository');
  },
);
