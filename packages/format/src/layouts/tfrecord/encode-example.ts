import { totalOf } from '@shardtool/base';
import type { ColumnValue } from '../../sample/label-column.js';

/**
 * The bytes of a tf.train.Example around payloads that are filled in later (tensorflow, core/example/feature.proto;
 * protobuf.dev, "Encoding"). A feature of bytes has one value; a feature of numbers has one, packed.
 */

/** The content of a feature: that many bytes to fill in later, or a value. */
export type FeatureContent =
  | { readonly kind: 'payload'; readonly bytes: number }
  | { readonly kind: 'bytes' | 'integer' | 'float'; readonly value: Exclude<ColumnValue, null> };

export interface NewFeature {
  readonly name: Uint8Array;
  readonly content: FeatureContent;
}

/** Tags of the length-delimited fields 1 to 3. */
const FIRST = 0x0a;
const SECOND = 0x12;
const THIRD = 0x1a;

/** A feature with known lengths. */
interface Measured {
  readonly name: Uint8Array;
  /** Field of Feature: bytes_list, float_list or int64_list. */
  readonly list: number;
  /** Its value; null for a payload. */
  readonly value: Uint8Array | null;
  readonly valueBytes: number;
  readonly listBytes: number;
  readonly featureBytes: number;
  readonly entryBytes: number;
}

/** An example whose length is known, to be laid out once. */
export class ExampleLayout {
  /** Size of the whole message. */
  readonly bytes: number;
  readonly #features: readonly Measured[];
  readonly #mapBytes: number;

  constructor(features: readonly NewFeature[]) {
    this.#features = features.map(measured);
    this.#mapBytes = totalOf(this.#features, ({ entryBytes }) => framed(entryBytes));
    this.bytes = framed(this.#mapBytes);
  }

  /** Writes the message to `target` from `start` on. Returns the positions of the payloads, in the order of their features. */
  layOut(target: Buffer, start: number): { readonly offset: number; readonly bytes: number }[] {
    const places: { offset: number; bytes: number }[] = [];
    let at = putHead(target, start, FIRST, this.#mapBytes);
    for (const { name, list, value, valueBytes, listBytes, featureBytes, entryBytes } of this.#features) {
      at = putHead(target, at, FIRST, entryBytes);
      at = putHead(target, at, FIRST, name.length);
      target.set(name, at);
      at = putHead(target, at + name.length, SECOND, featureBytes);
      at = putHead(target, at, list, listBytes);
      at = putHead(target, at, FIRST, valueBytes);
      if (value === null) places.push({ offset: at, bytes: valueBytes });
      else target.set(value, at);
      at += valueBytes;
    }
    return places;
  }
}

function measured({ name, content }: NewFeature): Measured {
  const value = content.kind === 'payload' ? null : encoded(content);
  const valueBytes = content.kind === 'payload' ? content.bytes : value!.length;
  const list = content.kind === 'integer' ? THIRD : content.kind === 'float' ? SECOND : FIRST;
  const listBytes = framed(valueBytes);
  const featureBytes = framed(listBytes);
  return {
    name,
    list,
    value,
    valueBytes,
    listBytes,
    featureBytes,
    entryBytes: framed(name.length) + framed(featureBytes),
  };
}

function encoded({ kind, value }: Exclude<FeatureContent, { kind: 'payload' }>): Uint8Array {
  if (kind === 'bytes') return Buffer.from(String(value));
  if (kind === 'integer') return varint(BigInt.asUintN(64, BigInt(value)));
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(Number(value));
  return bytes;
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Uint8Array.from([...bytes, Number(rest)]);
}

/** The size of a field of `bytes` bytes with its tag and length. */
function framed(bytes: number): number {
  let length = 2;
  for (let rest = bytes; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++;
  return length + bytes;
}

function putHead(target: Buffer, at: number, tag: number, length: number): number {
  target[at++] = tag;
  let rest = length;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) target[at++] = (rest % 0x80) | 0x80;
  target[at++] = rest;
  return at;
}
