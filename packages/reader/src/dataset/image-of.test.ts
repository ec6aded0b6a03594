import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { imageOf } from './image-of.js';

const PHOTO = new Uint8Array(readFileSync(path.resolve('examples/photos/cat/cat_000.jpg')));
const text = (value: string) => new Uint8Array(Buffer.from(value));

test('the image of a sample is the field that a loader decodes, with its media type', () => {
  expect(imageOf({ fields: { cls: text('1'), 'seg.png': text('mask'), jpg: PHOTO } })).toEqual({
    field: 'jpg',
    bytes: PHOTO,
    type: 'image/jpeg',
  });
});

test('the media type follows from the bytes, not from the name of the field', () => {
  expect(imageOf({ fields: { png: PHOTO } })?.type).toBe('image/jpeg');
  expect(imageOf({ fields: { webp: text('RIFF    WEBPVP8 ') } })?.type).toBe('image/webp');
  expect(imageOf({ fields: { npy: text('\u0093NUMPY') } })?.type).toBe('application/octet-stream');
});

test('a sample without an image has none', () => {
  expect(imageOf({ fields: { json: text('{}'), 'seg.png': PHOTO } })).toBeNull();
});
