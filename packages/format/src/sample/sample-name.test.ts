import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packedName, readsBack, splitEntryName, whyUnsafe } from './sample-name.js';

test('an entry is read as by WebDataset: the key ends at the first dot of the base name', () => {
  expect(splitEntryName('train/cat_1.jpg')).toEqual({ key: 'train/cat_1', field: 'jpg' });
  expect(splitEntryName('train/cat_1.seg.PNG')).toEqual({ key: 'train/cat_1', field: 'seg.png' });
  expect(splitEntryName('v1.2/IMG.0001.jpg')).toEqual({ key: 'v1.2/IMG', field: '0001.jpg' });
  expect(splitEntryName('./a.b/c.cls')).toEqual({ key: './a.b/c', field: 'cls' });
});

test('dotfiles and names without a dot belong to no sample', () => {
  for (const path of ['.DS_Store', 'a/.hidden', 'a/.hidden.jpg', 'README', 'v1.2/README', 'a/b.', 'a/', '', 'a.b/']) {
    expect(splitEntryName(path), path).toBeNull();
  }
});

test('two photos whose names differ after a dot are packed as two samples', () => {
  expect(packedName('IMG.0001.jpg')).toEqual({ key: 'IMG_0001', field: 'jpg' });
  expect(packedName('IMG.0002.JPG')).toEqual({ key: 'IMG_0002', field: 'jpg' });
  expect(packedName('v1.2/a.b/IMG.x.jpeg')).toEqual({ key: 'v1.2/a.b/IMG_x', field: 'jpeg' });
});

test('a compound field is used as a whole, and the longest match wins', () => {
  expect(packedName('d/cat_1.seg.png')).toEqual({ key: 'd/cat_1_seg', field: 'png' });
  expect(packedName('d/cat_1.Seg.PNG', ['seg.png'])).toEqual({ key: 'd/cat_1', field: 'seg.png' });
  expect(packedName('d/cat_1.a.seg.png', ['seg.png', 'a.seg.png'])).toEqual({ key: 'd/cat_1', field: 'a.seg.png' });
  expect(packedName('seg.png', ['seg.png'])).toEqual({ key: 'seg', field: 'png' });
});

test('dotfiles and names without a dot are not packed', () => {
  for (const path of ['.jpg', '.hidden.jpg', 'd/.seg.png', 'README', 'v1.2/README', 'a.']) {
    expect(packedName(path, ['seg.png']), path).toBeNull();
  }
});

test('a packed name always reads back as the same key and field', () => {
  const part = fc.string({ unit: fc.constantFrom(...'aB.1_-é İΣß'), minLength: 1, maxLength: 8 });
  const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
  fc.assert(
    fc.property(path, (relativePath) => {
      const name = packedName(relativePath, ['b.a', '1.b.a']);
      if (name === null) return;
      expect(splitEntryName(`${name.key}.${name.field}`)).toEqual(name);
      expect(readsBack(name.key, name.field)).toBe(true);
    }),
  );
});

test('a key with a dot in its last part, an upper-case field or a slash in the field does not read back', () => {
  expect(readsBack('a/b', 'jpg')).toBe(true);
  expect(readsBack('a.b/c', 'seg.png')).toBe(true);
  expect(readsBack('a/b.c', 'jpg')).toBe(false);
  expect(readsBack('a/b', 'JPG')).toBe(false);
  expect(readsBack('a/b', 'j/pg')).toBe(false);
  expect(readsBack('a/', 'jpg')).toBe(false);
  expect(readsBack('a', '')).toBe(false);
});

test('absolute paths, parent folders, NULs and the empty name are unsafe; dots inside a name are safe', () => {
  for (const path of ['', '/a.jpg', '../a.jpg', 'a/../b.jpg', 'a/..', 'a\0.jpg']) {
    expect(whyUnsafe(path), path).not.toBeNull();
  }
  for (const path of ['a.jpg', './a.jpg', 'a/..b.jpg', 'a../b', 'a/b..jpg']) expect(whyUnsafe(path), path).toBeNull();
});
