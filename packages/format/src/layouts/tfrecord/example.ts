import type { FileWindow } from '../bytes/file-window.js';

/** One feature of an example: the positions of its byte values, or its numbers. */
export type Feature =
  | { readonly kind: 'bytes'; readonly values: readonly { readonly offset: number; readonly bytes: number }[] }
  | { readonly kind: 'numbers'; readonly values: readonly (number | bigint)[] };

/** The bytes are not a tf.train.Example. */
export class ExampleError extends Error {}

/** A longer list of numbers is probably an image or a signal, not a label. */
const MOST_NUMBER_BYTES = 1 << 16;
const MOST_NAME_BYTES = 4096;
/** A varint of 64 bits. */
const VARINT_BYTES = 10;

/** The wire types of protocol buffers that examples have (protobuf.dev, "Encoding"). */
const VARINT = 0;
const LENGTH = 2;
const FIXED32 = 5;

/**
 * Finds the features of a tf.train.Example in a range of a file, without reading the values of bytes (tensorflow,
 * core/example/feature.proto): Example.features = 1, Features.feature = 1, a map of key = 1 and value = 2; in a Feature
 * bytes_list = 1, float_list = 2, int64_list = 3, each with value = 1. Throws {@link ExampleError}.
 */
export async function readExample(window: FileWindow, start: number, end: number): Promise<Map<string, Feature>> {
  const features = new Map<string, Feature>();
  const message = new Message(window);
  for await (const example of message.fields(start, end)) {
    if (example.number !== 1 || example.type !== LENGTH)
      throw new ExampleError('it has a field that a tf.train.Example cannot have');
    for await (const entry of message.fields(example.start, example.end)) {
      if (entry.number !== 1 || entry.type !== LENGTH) throw new ExampleError('its features are not a map');
      const { name, feature } = await readEntry(message, entry);
      features.set(name, feature);
    }
  }
  return features;
}

/** One field of a message: the range of a length-delimited one, or its value. */
interface Field {
  readonly number: number;
  readonly type: number;
  readonly start: number;
  readonly end: number;
  readonly value: bigint;
}

async function readEntry(message: Message, entry: Field): Promise<{ name: string; feature: Feature }> {
  let name = '';
  let feature: Feature = { kind: 'numbers', values: [] };
  for await (const part of message.fields(entry.start, entry.end)) {
    if (part.type !== LENGTH) throw new ExampleError('one of its features is not a map entry');
    if (part.number === 1) name = (await message.bytes(part, MOST_NAME_BYTES)).toString('utf8');
    else if (part.number === 2) feature = await readFeature(message, part);
  }
  return { name, feature };
}

async function readFeature(message: Message, { start, end }: Field): Promise<Feature> {
  let feature: Feature = { kind: 'numbers', values: [] };
  for await (const list of message.fields(start, end)) {
    if (list.type !== LENGTH) throw new ExampleError('one of its features is invalid');
    if (list.number === 1) feature = { kind: 'bytes', values: await readBytesList(message, list) };
    else if (list.number === 2) feature = { kind: 'numbers', values: await readFloats(message, list) };
    else if (list.number === 3) feature = { kind: 'numbers', values: await readIntegers(message, list) };
    else throw new ExampleError('one of its features has an unknown kind');
  }
  return feature;
}

async function readBytesList(message: Message, list: Field): Promise<{ offset: number; bytes: number }[]> {
  const values: { offset: number; bytes: number }[] = [];
  for await (const { number, type, start, end } of message.fields(list.start, list.end)) {
    if (number !== 1 || type !== LENGTH) throw new ExampleError('a list of bytes is invalid');
    values.push({ offset: start, bytes: end - start });
  }
  return values;
}

async function readFloats(message: Message, list: Field): Promise<number[]> {
  const values: number[] = [];
  for await (const field of message.fields(list.start, list.end)) {
    if (field.number !== 1) throw new ExampleError('a list of floats is invalid');
    if (field.type === FIXED32) values.push(floatOf(field.value));
    else if (field.type === LENGTH) {
      const packed = await message.bytes(field, MOST_NUMBER_BYTES);
      if (packed.length % 4 !== 0) throw new ExampleError('a list of floats is truncated');
      for (let at = 0; at < packed.length; at += 4) values.push(packed.readFloatLE(at));
    } else throw new ExampleError('a list of floats is invalid');
  }
  return values;
}

async function readIntegers(message: Message, list: Field): Promise<bigint[]> {
  const values: bigint[] = [];
  for await (const field of message.fields(list.start, list.end)) {
    if (field.number !== 1) throw new ExampleError('a list of integers is invalid');
    if (field.type === VARINT) values.push(BigInt.asIntN(64, field.value));
    else if (field.type === LENGTH) {
      const packed = await message.bytes(field, MOST_NUMBER_BYTES);
      for (let at = 0; at < packed.length; ) {
        const { value, bytes } = varint(packed, at);
        values.push(BigInt.asIntN(64, value));
        at += bytes;
      }
    } else throw new ExampleError('a list of integers is invalid');
  }
  return values;
}

function floatOf(bits: bigint): number {
  const word = new DataView(new ArrayBuffer(4));
  word.setUint32(0, Number(bits));
  return word.getFloat32(0);
}

/** Iterates over the fields of messages in a file. */
class Message {
  readonly #window: FileWindow;

  constructor(window: FileWindow) {
    this.#window = window;
  }

  async *fields(start: number, end: number): AsyncGenerator<Field> {
    for (let at = start; at < end; ) {
      const head = await this.#window.at(at, Math.min(end - at, 2 * VARINT_BYTES));
      const room = head.subarray(0, end - at);
      const tag = varint(room, 0);
      const number = Number(tag.value >> 3n);
      const type = Number(tag.value & 7n);
      at += tag.bytes;
      if (type === VARINT || type === LENGTH) {
        const { value, bytes } = varint(room, tag.bytes);
        at += bytes;
        if (type === VARINT) yield { number, type, start: at, end: at, value };
        else {
          if (value > BigInt(end - at)) throw new ExampleError('a value in it is longer than its message');
          const stop = at + Number(value);
          yield { number, type, start: at, end: stop, value };
          at = stop;
        }
      } else if (type === FIXED32 && end - at >= 4) {
        yield { number, type, start: at, end: at + 4, value: BigInt(room.readUInt32LE(tag.bytes)) };
        at += 4;
      } else throw new ExampleError('it is not the protocol buffer of an example');
    }
  }

  /** A copy of a field's bytes. */
  async bytes({ start, end }: Field, most: number): Promise<Buffer> {
    if (end - start > most) throw new ExampleError(`a name or a list of numbers in it takes ${end - start} bytes`);
    return start === end
      ? Buffer.alloc(0)
      : Buffer.from((await this.#window.at(start, end - start)).subarray(0, end - start));
  }
}

function varint(bytes: Buffer, at: number): { readonly value: bigint; readonly bytes: number } {
  let value = 0n;
  for (let i = 0; i < VARINT_BYTES; i++) {
    const byte = bytes[at + i];
    if (byte === undefined) break;
    value |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), bytes: i + 1 };
  }
  throw new ExampleError('a number in it does not end');
}
