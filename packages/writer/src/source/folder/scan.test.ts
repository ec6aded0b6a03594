import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileNameError, LinkLoopError, SourceError } from '../../errors.js';
import { FolderReader } from './folder-reader.js';
import { checkSource, scanFolder } from './scan.js';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'scan-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function touch(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), '');
  }
}

async function scan(options: { include?: string[]; exclude?: string[]; onBad?: 'quarantine' } = {}) {
  const place = { memoryBytes: 1e6, folder: root };
  const {
    files,
    isMeasured: _,
    ...folders
  } = await scanFolder(root, { include: ['**'], exclude: [], place, onBad: 'raise', ...options });
  const reader = files.reader();
  return { paths: Array.from({ length: files.count }, (_, i) => reader.path(i)), ...folders };
}

test('the files of a tree are sorted by code point, without dotfiles', async () => {
  touch(
    'b/2.jpg',
    'b/10.jpg',
    'a/x/1.jpg',
    'top.jpg',
    '.hidden/1.jpg',
    'a/.DS_Store',
    'é.jpg',
    '\u{1f600}.jpg',
    '\uff21.jpg',
  );
  expect((await scan()).paths).toEqual([
    'a/x/1.jpg',
    'b/10.jpg',
    'b/2.jpg',
    'top.jpg',
    'é.jpg',
    '\uff21.jpg',
    '\u{1f600}.jpg',
  ]);
});

test('include and exclude take patterns below the source, and a file that matches two is returned once', async () => {
  touch('a/1.jpg', 'a/1.png', 'b/1.jpg', 'b/c/2.jpg');
  expect((await scan({ include: ['**/*.jpg', 'b/**'] })).paths).toEqual(['a/1.jpg', 'b/1.jpg', 'b/c/2.jpg']);
  expect((await scan({ include: ['b/**', 'b/c/**'] })).paths).toEqual(['b/1.jpg', 'b/c/2.jpg']);
  expect((await scan({ exclude: ['b/**', '**/*.png'] })).paths).toEqual(['a/1.jpg']);
});

test('names with brackets, spaces and braces are names, not patterns', async () => {
  touch('a [1]/x (2).jpg', '{b}/*.jpg', 'c\\d.jpg');
  expect((await scan()).paths).toEqual(['a [1]/x (2).jpg', 'c\\d.jpg', '{b}/*.jpg']);
});

test('links to files and to folders are followed', async () => {
  touch('outside/1.jpg', 'tree/a/0.jpg');
  root = join(root, 'tree');
  symlinkSync('../../outside/1.jpg', join(root, 'a/link.jpg'));
  symlinkSync('../outside', join(root, 'b'));
  expect((await scan()).paths).toEqual(['a/0.jpg', 'a/link.jpg', 'b/1.jpg']);
  root = dirname(root);
});

test('a folder that two paths lead to is packed once, and the other path is reported', async () => {
  touch('real/1.jpg');
  symlinkSync('real', join(root, 'again'));
  const { paths, repeatedFolders } = await scan();
  expect(paths).toEqual(['real/1.jpg']);
  expect(repeatedFolders).toEqual([join(root, 'again')]);
});

test('a folder outside of the tree is packed at the first of the links to it', async () => {
  touch('outside/1.jpg', 'tree/z.jpg');
  root = join(root, 'tree');
  symlinkSync('../outside', join(root, 'b'));
  symlinkSync('../outside', join(root, 'a'));
  const { paths, repeatedFolders } = await scan();
  expect(paths).toEqual(['a/1.jpg', 'z.jpg']);
  expect(repeatedFolders).toEqual([join(root, 'b')]);
  root = dirname(root);
});

test('a link to a hidden folder is followed', async () => {
  touch('.store/1.jpg');
  symlinkSync('.store', join(root, 'cat'));
  const { paths, hiddenFolders } = await scan();
  expect(paths).toEqual(['cat/1.jpg']);
  expect(hiddenFolders).toEqual([]);
});

test('folders that are skipped because of a leading dot are reported', async () => {
  touch('.class/1.jpg', 'a/1.jpg', 'a/.cache/2.jpg', 'a/.3.jpg');
  symlinkSync('../.class', join(root, 'a/.link'));
  for (const options of [{}, { include: ['**/*.jpg'] }]) {
    const { paths, hiddenFolders } = await scan(options);
    expect(paths).toEqual(['a/1.jpg']);
    expect(hiddenFolders).toEqual(['.class', 'a/.cache', 'a/.link'].map((path) => join(root, path)));
  }
});

test('a hidden link that is circular or dangling is ignored', async () => {
  touch('a/1.jpg');
  symlinkSync('.circle', join(root, 'a/.circle'));
  symlinkSync('gone', join(root, 'a/.nowhere'));
  const { paths, hiddenFolders } = await scan();
  expect(paths).toEqual(['a/1.jpg']);
  expect(hiddenFolders).toEqual([]);
});

test('the paths of folders and files are sorted together', async () => {
  touch('a/1.jpg', 'a-b/1.jpg', 'a.jpg', 'a-b.jpg', 'a0/1.jpg', 'a/b/1.jpg', 'a/b.jpg', 'a/b-c.jpg');
  const { paths } = await scan();
  expect(paths).toEqual([...paths].sort());
  expect(paths).toHaveLength(8);
});

test('a pattern that matches everything finds the same files as no pattern', async () => {
  touch('a/b/1.jpg', 'a/2.jpg', '3.jpg', '.hidden/4.jpg', 'c d/5 [6].jpg', 'outside/7.jpg');
  symlinkSync('../outside', join(root, 'a', 'link'));
  symlinkSync('nowhere', join(root, 'a', '8.jpg'));
  expect(await scan({ include: ['**/*'] })).toEqual(await scan());
});

test('a link to a parent folder is an error that names the link, also through another link', async () => {
  touch('a/b/1.jpg');
  symlinkSync('..', join(root, 'a/b/up'));
  await expect(scan()).rejects.toThrow(expect.objectContaining({ path: join(root, 'a/b/up') }));
  await expect(scan()).rejects.toBeInstanceOf(LinkLoopError);

  rmSync(join(root, 'a/b/up'));
  mkdirSync(join(root, 'one'));
  mkdirSync(join(root, '.two'));
  symlinkSync('../.two', join(root, 'one/there'));
  symlinkSync('../one', join(root, '.two/back'));
  await expect(scan()).rejects.toThrow(join(root, 'one/there/back'));
});

test('a dangling link is listed as a file, so that packing it fails', async () => {
  touch('a/1.jpg');
  symlinkSync('gone.jpg', join(root, 'a/2.jpg'));
  expect((await scan()).paths).toEqual(['a/1.jpg', 'a/2.jpg']);
});

test('a dangling link without an extension is an error that names its target, unless it is excluded', async () => {
  touch('a/1.jpg');
  symlinkSync('/nowhere/photos', join(root, 'b'));
  await expect(scan()).rejects.toBeInstanceOf(SourceError);
  const message = `The link ${join(root, 'b')} leads to /nowhere/photos, which cannot be read: no such file or folder`;
  for (const include of ['**', '**/*.jpg']) await expect(scan({ include: [include] })).rejects.toThrow(message);
  for (const options of [{ exclude: ['b'] }, { exclude: ['b/**'] }, { include: ['a/*.jpg'] }]) {
    expect((await scan(options)).paths).toEqual(['a/1.jpg']);
  }
  rmSync(join(root, 'a'), { recursive: true });
  expect(() => checkSource(join(root, 'b'))).toThrow('is a link to /nowhere/photos, which does not exist; mount');
});

test('a name that is not UTF-8 is an error that shows its bytes, for files and for folders', async () => {
  touch('a/1.jpg');
  writeFileSync(Buffer.concat([Buffer.from(`${root}/a/caf`), Buffer.from([0xe9]), Buffer.from('.jpg')]), '');
  await expect(scan()).rejects.toThrow('a/caf\\xe9.jpg is not UTF-8');
  execFileSync('rm', ['-r', join(root, 'a')]);
  mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]));
  await expect(scan()).rejects.toBeInstanceOf(FileNameError);
});

test('with quarantine, names that cannot be keys and circular links are skipped and reported', async () => {
  touch('a/1.jpg', 'a/x\ny.jpg', 'b\nc/2.jpg', 'd/3.jpg');
  const odd = (byte: number) => Buffer.concat([Buffer.from(`${root}/a/caf`), Buffer.from([byte]), Buffer.from('.jpg')]);
  for (const byte of [0xe8, 0xe9]) writeFileSync(odd(byte), '');
  symlinkSync('..', join(root, 'd/up'));
  for (const include of [['**'], ['**/*.jpg', '**/nothing']]) {
    const { paths, refused } = await scan({ include, onBad: 'quarantine' });
    expect(paths).toEqual(['a/1.jpg', 'd/3.jpg']);
    expect(refused.map(({ path }) => path).sort()).toEqual([
      'a/caf\\xe8.jpg',
      'a/caf\\xe9.jpg',
      'a/x\ny.jpg',
      'b\nc',
      'd/up',
    ]);
    expect(refused.find(({ path }) => path === 'd/up')!.reason).toContain('leads back to');
  }
  const chosen = await scan({ include: ['d/*.jpg'], onBad: 'quarantine' });
  expect(chosen).toMatchObject({ paths: ['d/3.jpg'], refused: [] });
});

test('a name that really contains the replacement character is valid', async () => {
  touch('a/\ufffd.jpg');
  expect((await scan()).paths).toEqual(['a/\ufffd.jpg']);
});

test('a name with a line break is an error, since patterns would not match it', async () => {
  touch('a/1\n2.jpg');
  await expect(scan()).rejects.toBeInstanceOf(FileNameError);
});

test('a folder that cannot be read is an error with its path', () => {
  expect(() => new FolderReader(root).list(join(root, 'gone'))).toThrow(SourceError);
  expect(() => new FolderReader(root).list(join(root, 'gone'))).toThrow(join(root, 'gone'));
});

test('hundreds of nested folders and thousands of sibling folders are walked', async () => {
  touch(`${'d/'.repeat(300)}1.jpg`);
  for (let i = 0; i < 1000; i++) touch(`wide/${i}/1.jpg`);
  expect((await scan()).paths).toHaveLength(1001);
});

test('a source that is missing or not a folder is an error', () => {
  touch('file.txt');
  expect(() => checkSource(join(root, 'nowhere'))).toThrow(SourceError);
  expect(() => checkSource(join(root, 'file.txt'))).toThrow('not a folder');
});
