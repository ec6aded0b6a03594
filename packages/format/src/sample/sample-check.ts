import { EntryNameError, KeyLengthError, OptionError } from '../errors.js';
import type { FieldSize } from '../layouts/layout.js';
import { KEY_ENTRY } from './sample-codec.js';
import { whyUnsafe } from './sample-name.js';

/** As many as the readers of msgpack take; far more than any sample has. */
const MAX_FIELDS = 1000;
const MAX_FIELD_NAME_BYTES = 1024;

/** Checks what a writer is given, so that everything that is written can be read back under its own name. */
export class SampleCheck {
  readonly #shard: string;
  readonly #maxKeyBytes: number;
  readonly #knownFields = new Set<string>();

  constructor(shard: string, maxKeyBytes: number) {
    this.#shard = shard;
    this.#maxKeyBytes = maxKeyBytes;
  }

  /** Throws {@link EntryNameError}, {@link KeyLengthError} or {@link OptionError}. */
  check(key: string, fields: readonly FieldSize[]): void {
    const shard = this.#shard;
    const reason = whyUnsafe(key) ?? whyNotText(key);
    if (reason !== null) {
      throw new EntryNameError({ shard, key }, `${shard}: the key ${JSON.stringify(key)} ${reason}; choose another.`);
    }
    const keyBytes = Buffer.byteLength(key);
    if (keyBytes > this.#maxKeyBytes) throw keyTooLong(shard, key, keyBytes, this.#maxKeyBytes);
    if (fields.length === 0) throw new OptionError({ shard, key }, `${shard}: sample "${key}" has no field to write.`);
    if (fields.length > MAX_FIELDS) {
      const message = `${shard}: sample "${key}" has ${fields.length} fields, more than ${MAX_FIELDS}; put them into fewer.`;
      throw new OptionError({ shard, key }, message);
    }
    for (const { name } of fields) this.#checkField(key, name);
  }

  #checkField(key: string, name: string): void {
    if (this.#knownFields.has(name)) return;
    const reason =
      whyUnsafe(name) ??
      whyNotText(name) ??
      (name.includes('/') ? 'holds a slash' : null) ??
      (name === KEY_ENTRY ? 'is that of the key' : null) ??
      (Buffer.byteLength(name) > MAX_FIELD_NAME_BYTES ? `is longer than ${MAX_FIELD_NAME_BYTES} bytes` : null);
    if (reason !== null) {
      const shard = this.#shard;
      const message = `${shard}: sample "${key}" has a field whose name ${reason} (${JSON.stringify(name)}); rename it.`;
      throw new EntryNameError({ shard, key }, message);
    }
    this.#knownFields.add(name);
  }
}

/** UTF-16 that is no text: it would become U+FFFD, and two names could become one. */
const loneSurrogate = /\p{Surrogate}/u;

function whyNotText(name: string): string | null {
  return loneSurrogate.test(name) ? 'is not text' : null;
}

function keyTooLong(shard: string, key: string, bytes: number, most: number): KeyLengthError {
  const message = `${shard}: the key "${key}" is ${bytes} bytes long, and this kind of shard takes ${most}; shorten it, or pack to tar.`;
  return new KeyLengthError({ shard, key }, message);
}
