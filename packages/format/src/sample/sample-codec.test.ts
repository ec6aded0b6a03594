import fc from 'fast-check';
import { unpack } from 'msgpackr';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { fieldPayload } from './field-payload.js';
import { ImageEncoder, MapEncoder } from './sample-codec.js';

interface Field {
  name: string;
  payload: Uint8Array;
}

/** Encodes a sample like a writer, and returns the value with the fields that are found in it. */
function encode(key: string, fields: readonly Field[], withKey = true) {
  const encoder = new MapEncoder(withKey);
  const sizes = fields.map(({ name, payload }) => ({ name, bytes: payload.length }));
  const target = Buffer.alloc(encoder.plan(key, sizes), 0xee);
  for (const [i, view] of encoder.layOut(target).entries()) view.set(fields[i]!.payload);
  const value = target.subarray(0, encoder.settle());
  const payloads = encoder.placed.map(({ offset, bytes, msgpack }) =>
    Buffer.from(fieldPayload(value.subarray(offset, offset + bytes), msgpack)),
  );
  return { value, payloads, placed: encoder.placed };
}

/** Long buffers are slow to compare, strings are not. */
const letters = (bytes: Buffer): string => bytes.toString('latin1');
const text = (letters: string): Uint8Array => Buffer.from(letters);

const payload = fc.oneof(
  fc.tuple(fc.nat(70_000), fc.nat(255)).map(([bytes, value]) => Buffer.alloc(bytes, value)),
  fc.uint8Array({ maxLength: 40 }),
  fc.string({ unit: 'grapheme' }).map(text),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map((n) => text(String(n))),
  fc.integer({ min: -40_000, max: 70_000 }).map((n) => text(String(n))),
  fc.constantFrom('007', '-0', '+1', '1.0', ' 1', '1e3', '').map(text),
);
const names = fc.constantFrom('jpg', 'png', 'seg.png', 'cls', 'id', 'txt', 'json', 'bboxes.json', 'é'.repeat(40));
const sample = fc.uniqueArray(names, { minLength: 1, maxLength: 7 }).chain((unique) => {
  return fc.tuple(...unique.map((name) => payload.map((bytes) => ({ name, payload: bytes }))));
});

test('payloads of any content are read back byte for byte from their positions', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), sample, fc.boolean(), (key, fields, withKey) => {
      const { payloads } = encode(key, fields, withKey);
      expect(payloads.map(letters)).toEqual(fields.map((field) => letters(Buffer.from(field.payload))));
    }),
    { numRuns: 40 * TIMES },
  );
});

test('an independent decoder reads the key, bytes, strings and integers', () => {
  const { value } = encode('train/é 1', [
    { name: 'cls', payload: text('281') },
    { name: 'id', payload: text('12345678901234567') },
    { name: 'jpg', payload: Uint8Array.from([255, 216, 255]) },
    { name: 'json', payload: text('{"a": 1}') },
    { name: 'txt', payload: text('eine Katze') },
  ]);
  expect(unpack(value)).toEqual({
    __key__: 'train/é 1',
    jpg: Buffer.from([255, 216, 255]),
    json: '{"a": 1}',
    txt: 'eine Katze',
    cls: 281,
    id: 12345678901234567n,
  });
});

test('integers of up to 64 bits are stored as integers if their digits are in canonical form', () => {
  const edges = [0n, 127n, 128n, 255n, 256n, 65535n, 65536n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n];
  const negative = [-1n, -32n, -33n, -128n, -129n, -32768n, -32769n, -(2n ** 31n), -(2n ** 31n) - 1n, -(2n ** 63n)];
  for (const integer of [...edges, ...negative]) {
    const { value, placed, payloads } = encode('k', [{ name: 'cls', payload: text(String(integer)) }]);
    expect(placed[0]!.msgpack).toBe(true);
    expect(BigInt((unpack(value) as { cls: number | bigint }).cls)).toBe(integer);
    expect(payloads[0]!.toString()).toBe(String(integer));
  }
  for (const digits of ['007', '-0', '1.0', ' 1', '1\n', '', String(2n ** 64n), String(-(2n ** 63n) - 1n), 'cat']) {
    const { value, placed } = encode('k', [{ name: 'cls', payload: text(digits) }]);
    expect(placed[0]!.msgpack).toBe(false);
    expect(unpack(value)).toEqual({ __key__: 'k', cls: Buffer.from(digits) });
  }
});

test('a text that is not UTF-8 is stored as binary data', () => {
  const { value } = encode('k', [{ name: 'txt', payload: Uint8Array.from([0xff, 0x41]) }]);
  expect(unpack(value)).toEqual({ __key__: 'k', txt: Buffer.from([0xff, 0x41]) });
});

test('an image is not moved if the other fields turn out shorter', () => {
  const encoder = new MapEncoder(true);
  const target = Buffer.alloc(
    encoder.plan('k', [
      { name: 'cls', bytes: 9 },
      { name: 'jpg', bytes: 4 },
    ]),
  );
  const [cls, image] = encoder.layOut(target);
  cls!.set(text('123456789'));
  image!.set([1, 2, 3, 4]);
  encoder.settle();
  expect(image).toEqual(Buffer.from([1, 2, 3, 4]));
  expect(encoder.placed[1]!.offset).toBe(image!.byteOffset - target.byteOffset);
});

test('an encoder for images only accepts no other field', () => {
  const encoder = new ImageEncoder();
  expect(encoder.plan('k', [{ name: 'jpg', bytes: 3 }])).toBe(3);
  const fields = [
    { name: 'cls', bytes: 1 },
    { name: 'jpg', bytes: 3 },
  ];
  expect(() => encoder.plan('k', fields)).toThrow('Sample "k" has 2 fields');
});
