import {
  EntryNameError,
  KeyLengthError,
  OptionError,
  option,
  optionName,
  SampleSizeError,
  sentence,
} from '@shardtool/base';
import { KEY_ENTRY } from './sample-codec.js';
import { whyUnsafe } from './sample-name.js';

/** A field to write. If the layout has types, its name determines its type: see `fieldType`. */
export interface FieldSize {
  readonly name: string;
  readonly bytes: number;
}

/** Rules for names that one layout adds to the common ones. Reasons continue "the key ... ". */
export interface SampleRules {
  readonly maxKeyBytes: number;
  readonly maxFields: number;
  /** Maximum length of one payload, in bytes; absent if there is no limit. */
  readonly maxFieldBytes?: number;
  whyNotKey(key: string): string | null;
  /** A format that stores the keys that are refused by {@link whyNotKey}. */
  readonly formatOfOtherKeys?: string;
  whyNotField(name: string): string | null;
  /** Throws {@link SampleSizeError} if a whole sample, with names and headers, exceeds the limit of the layout. */
  checkStored?(shard: string, key: string, fields: readonly FieldSize[]): void;
}

/** The limit of msgpack readers; far more than any sample has. */
const MAX_MAP_FIELDS = 1000;
const MAX_FIELD_NAME_BYTES = 1024;
/** msgpack specification, "bin format family": bin 32. */
const MAX_BIN_BYTES = 0xffffffff;

/** Rules for shards whose samples are msgpack maps. */
export function mapRules(maxKeyBytes: number): SampleRules {
  return {
    maxKeyBytes,
    maxFields: MAX_MAP_FIELDS,
    maxFieldBytes: MAX_BIN_BYTES,
    whyNotKey: () => null,
    whyNotField: (name) =>
      (name === KEY_ENTRY ? 'is that of the key' : null) ??
      (Buffer.byteLength(name) > MAX_FIELD_NAME_BYTES ? `is longer than ${MAX_FIELD_NAME_BYTES} bytes` : null),
  };
}

/** Rules for shards whose samples are table rows of other software: any name is valid, payloads have at most `maxFieldBytes` bytes. */
export function tableRules(maxFieldBytes?: number): SampleRules {
  return {
    maxKeyBytes: Number.POSITIVE_INFINITY,
    maxFields: Number.POSITIVE_INFINITY,
    ...(maxFieldBytes === undefined ? {} : { maxFieldBytes }),
    whyNotKey: () => null,
    whyNotField: () => null,
  };
}

/** Checks what a writer is given, so that everything that is written can be read back under its own name. */
export class SampleCheck {
  readonly #shard: string;
  readonly #rules: SampleRules;
  readonly #knownFields = new Set<string>();
  readonly #maxSampleBytes: number;

  constructor(shard: string, rules: SampleRules, maxSampleBytes = Number.POSITIVE_INFINITY) {
    this.#shard = shard;
    this.#rules = rules;
    this.#maxSampleBytes = maxSampleBytes;
  }

  /**
   * `fields` are sorted by name. Throws {@link EntryNameError}, {@link KeyLengthError}, {@link SampleSizeError} or
   * {@link OptionError}.
   */
  check(key: string, fields: readonly FieldSize[]): void {
    const shard = this.#shard;
    const { maxKeyBytes, maxFields } = this.#rules;
    const reason = whyUnsafe(key) ?? whyNotText(key);
    const ofLayout = reason === null ? this.#rules.whyNotKey(key) : null;
    if (reason !== null || ofLayout !== null) {
      const { formatOfOtherKeys: format } = this.#rules;
      const other = ofLayout === null || format === undefined ? '' : sentence`, or set ${option('format', format)}`;
      const message = sentence`${shard}: the key ${JSON.stringify(key)} ${reason ?? ofLayout}; choose another key${other}.`;
      throw new EntryNameError({ shard, key }, message);
    }
    // A UTF-16 code unit takes at most three bytes.
    if (key.length * 3 > maxKeyBytes) this.#checkKeyBytes(key, maxKeyBytes);
    if (fields.length === 0) throw new OptionError({ shard, key }, `${shard}: sample "${key}" has no fields to write.`);
    if (fields.length > maxFields) {
      const message = `${shard}: sample "${key}" has ${fields.length} fields, more than ${maxFields}; combine them into fewer fields.`;
      throw new OptionError({ shard, key }, message);
    }
    let last: string | undefined;
    let total = 0;
    for (let i = 0; i < fields.length; i++) {
      const { name, bytes } = fields[i]!;
      total += bytes;
      if (name === last) throw new OptionError({ shard, key }, `${shard}: sample "${key}" has two fields "${name}".`);
      last = name;
      this.#checkField(key, name);
      if (bytes > (this.#rules.maxFieldBytes ?? bytes)) throw this.#fieldTooLarge(key, name, bytes);
    }
    if (total > this.#maxSampleBytes) throw sampleTooLarge(shard, key, total, this.#maxSampleBytes);
    this.#rules.checkStored?.(shard, key, fields);
  }

  #fieldTooLarge(key: string, name: string, bytes: number): SampleSizeError {
    const [shard, limit] = [this.#shard, this.#rules.maxFieldBytes!];
    const message = `${shard}: field "${name}" of sample "${key}" has ${bytes} bytes, but this layout allows at most ${limit}; omit it, or write tar shards.`;
    return new SampleSizeError({ shard, key, bytes, limit }, message);
  }

  #checkKeyBytes(key: string, most: number): void {
    const bytes = Buffer.byteLength(key);
    if (bytes > most) throw keyTooLong(this.#shard, key, bytes, most);
  }

  #checkField(key: string, name: string): void {
    if (this.#knownFields.has(name)) return;
    const reason =
      whyUnsafe(name) ??
      whyNotText(name) ??
      (name.includes('/') ? 'holds a slash' : null) ??
      this.#rules.whyNotField(name);
    if (reason !== null) {
      const shard = this.#shard;
      const message = `${shard}: sample "${key}" has a field whose name ${reason} (${JSON.stringify(name)}); rename it.`;
      throw new EntryNameError({ shard, key }, message);
    }
    this.#knownFields.add(name);
  }
}

/** Invalid UTF-16: it would become U+FFFD, and two names could become the same. */
const loneSurrogate = /\p{Surrogate}/u;

function whyNotText(name: string): string | null {
  return loneSurrogate.test(name) ? 'is not text' : null;
}

function keyTooLong(shard: string, key: string, bytes: number, most: number): KeyLengthError {
  const message = `${shard}: the key "${key}" is ${bytes} bytes long, but this layout allows at most ${most}; shorten it, or pack to tar.`;
  return new KeyLengthError({ shard, key }, message);
}

/** The default sample size limit of all commands that read or write samples: 1 GiB. */
export const MAX_SAMPLE_BYTES = 2 ** 30;

/** `bytes` is the total of all fields of the sample. */
export function sampleTooLarge(shard: string, key: string, bytes: number, limit: number): SampleSizeError {
  const message = sentence`${shard}: sample "${key}" has ${bytes} bytes, more than the limit of ${limit} (${optionName('maxSampleBytes')}); omit it, or raise the limit.`;
  return new SampleSizeError({ shard, key, bytes, limit }, message);
}
