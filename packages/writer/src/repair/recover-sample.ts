import {
  crc32,
  crc32Hex,
  type FieldPosition,
  FileError,
  fieldPayload,
  isImageField,
  ShardtoolError,
  type Source,
} from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { ExpectedField, ExpectedSample } from './expected-samples.js';
import type { SourceFiles } from './source-files.js';

/** Where what is lost may be found, and how what is found is judged. */
export interface RecoverySetting {
  readonly source: Source | null;
  readonly files: SourceFiles | null;
  readonly loadChecker: () => Promise<Checker>;
  /** Also images that are as they were packed have to be decodable. */
  readonly decode: boolean;
}

/** What else is known of a sample. */
export interface SampleFacts {
  /** Path of its image below the packed folder; '' where it is not known. */
  readonly source: string;
  /** Class number; -1 where there is none, or it is not known. */
  readonly cls: number;
}

export interface RecoveredField {
  readonly name: string;
  readonly payload: Uint8Array;
}

/** A sample with all of its fields; or why it cannot be had. */
export type Recovery =
  | {
      readonly fields: readonly RecoveredField[];
      readonly isRestored: boolean;
      /** Names of the fields that nothing proves. */
      readonly unproven: readonly string[];
    }
  | { readonly reason: string };

type FieldRecovery =
  | { readonly payload: Uint8Array; readonly from: 'shard' | 'source'; readonly isProven: boolean }
  | { readonly reason: string };

/**
 * Finds every field of a sample: in the shard where its checksum is right, else in the packed folder. Where the checksum
 * is lost as well, what equals the packed file counts, and an image that can be decoded whole.
 */
export async function recoverSample(
  sample: ExpectedSample,
  facts: SampleFacts,
  setting: RecoverySetting,
): Promise<Recovery> {
  const fields: RecoveredField[] = [];
  const reasons: string[] = [];
  const unproven: string[] = [];
  let isRestored = false;
  for (const field of sample.fields) {
    const recovery = await recoverField(field, sample.key, facts, setting);
    if ('reason' in recovery) {
      reasons.push(`field "${field.name}" ${recovery.reason}`);
      continue;
    }
    fields.push({ name: field.name, payload: recovery.payload });
    isRestored ||= recovery.from === 'source';
    if (!recovery.isProven) unproven.push(field.name);
  }
  if (fields.length === 0 && reasons.length === 0) reasons.push('nothing of it is left');
  return reasons.length > 0 ? { reason: reasons.join('; ') } : { fields, isRestored, unproven };
}

async function recoverField(
  field: ExpectedField,
  key: string,
  facts: SampleFacts,
  setting: RecoverySetting,
): Promise<FieldRecovery> {
  const stored = await fromShard(field, setting);
  const packed = fromFiles(field, key, facts, setting);
  const best = better(stored, packed);
  if ('reason' in best || !isImageField(field.name) || (best.isProven && !setting.decode)) return best;
  const trouble = await decodeTrouble(best.payload, setting.loadChecker);
  if (trouble === null) return best;
  const other = best === packed || best.isProven ? null : packed;
  if (other !== null && (await decodeTrouble(other.payload, setting.loadChecker)) === null) return other;
  return { reason: `cannot be decoded whole: ${trouble}` };
}

/** What stands in the shard, unless only the packed file is proven; an unproven one is proven by a file that is the same. */
function better(stored: FieldRecovery, packed: FieldRecovery | null): FieldRecovery {
  if (packed === null || 'reason' in packed) return stored;
  if ('reason' in stored) return packed;
  if (stored.isProven) return stored;
  if (Buffer.compare(packed.payload, stored.payload) === 0) return { ...stored, isProven: true };
  return packed.isProven ? packed : stored;
}

async function fromShard(
  { places, crc32: expected }: ExpectedField,
  { source }: RecoverySetting,
): Promise<FieldRecovery> {
  let trouble: FieldRecovery | null = null;
  for (const place of source === null ? [] : places) {
    const payload = await payloadAt(source!, place);
    if (typeof payload === 'string') trouble ??= { reason: payload };
    else if (expected === null) return { payload, from: 'shard', isProven: false };
    else if (crc32(payload) === expected) return { payload, from: 'shard', isProven: true };
    else {
      const reason = `has changed: crc32 ${crc32Hex(crc32(payload))}, the index says ${crc32Hex(expected)}`;
      trouble ??= { reason };
    }
  }
  return trouble ?? { reason: 'is missing' };
}

/** The payload at a place, or what is wrong there. */
async function payloadAt(source: Source, { offset, bytes, msgpack }: FieldPosition): Promise<Uint8Array | string> {
  if (offset + bytes > source.size) return 'ends behind the end of the shard';
  const stored = new Uint8Array(bytes);
  try {
    await source.readAt(offset, stored);
    return fieldPayload(stored, msgpack);
  } catch (error) {
    if (error instanceof FileError) return `cannot be read (${(error.cause as Error).message})`;
    return `is no msgpack value any more (${(error as Error).message})`;
  }
}

/** What the field was packed from, as far as that is known to be the same still. */
function fromFiles(
  { name, bytes, isInteger, crc32: expected }: ExpectedField,
  key: string,
  { source, cls }: SampleFacts,
  { files }: RecoverySetting,
): { payload: Uint8Array; from: 'source'; isProven: boolean } | null {
  // The class number comes from no file, and the index has it.
  const number = name === 'cls' && cls >= 0 ? Buffer.from(String(cls)) : null;
  for (const payload of [number, files?.read(key, source, name) ?? null]) {
    if (payload === null) continue;
    const isProven = expected === null ? payload === number && isInteger : crc32(payload) === expected;
    if (isProven || (expected === null && bytes === payload.length)) return { payload, from: 'source', isProven };
  }
  return null;
}

async function decodeTrouble(image: Uint8Array, loadChecker: () => Promise<Checker>): Promise<string | null> {
  const checker = await loadChecker();
  try {
    await checker.check(image);
    return null;
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    return error.message;
  }
}
