import { crc32Hex, FileError, ShardtoolError } from '@shardtool/base';
import { type FieldPosition, fieldPayload, isImageField, type Source, sampleTooLarge } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import { HELD_BYTES } from '../shard/large-sample.js';
import type { ExpectedField, ExpectedSample } from './expected-samples.js';
import type { PackedFiles } from './packed-folder.js';
import { heldPayload, type Payload, payloadIn } from './payload.js';

/** Where lost data may be found, and how it is judged. */
export interface RecoverySetting {
  /** Name in messages. */
  readonly shard: string;
  readonly source: Source | null;
  readonly packed: PackedFiles | null;
  readonly loadChecker: () => Promise<Checker>;
  /** True if unchanged images must also be decodable. */
  readonly decode: boolean;
  /** Limit for data that must be in memory as a whole. */
  readonly maxSampleBytes: number;
}

/** Other facts about a sample. */
export interface KnownFacts {
  /** Path of its image below the source folder; '' if it is not known. */
  readonly source: string;
  /** Class number; -1 if there is none, or it is not known. */
  readonly cls: number;
}

export interface RecoveredField {
  readonly name: string;
  readonly payload: Payload;
}

/** A sample with all its fields, or the reason why it cannot be recovered. */
export type Recovery =
  | {
      readonly fields: readonly RecoveredField[];
      readonly isRestored: boolean;
      /** Names of the fields that nothing verifies. */
      readonly unproven: readonly string[];
    }
  | { readonly reason: string };

type FieldRecovery =
  | { readonly payload: Payload; readonly from: 'shard' | 'source'; readonly isProven: boolean }
  | { readonly reason: string };

/**
 * Recovers every field of a sample: from the shard if its checksum matches, otherwise from the source folder. If the
 * checksum is lost as well, bytes that equal the source file count, or an image that can be fully decoded. At most a
 * piece of a field of more than {@link HELD_BYTES} is in memory, unless it is an image that must be decoded, or a
 * msgpack value. Throws {@link SampleSizeError} if that exceeds the limit.
 */
export async function recoverSample(
  sample: ExpectedSample,
  facts: KnownFacts,
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
  facts: KnownFacts,
  setting: RecoverySetting,
): Promise<FieldRecovery> {
  const stored = await fromShard(field, key, setting);
  // Unchanged data needs no source file.
  const isFound = !('reason' in stored) && stored.isProven;
  const packed = isFound ? null : await fromFiles(field, key, facts, setting);
  const best = better(stored, packed);
  if ('reason' in best || !isImageField(field.name) || (best.isProven && !setting.decode)) return best;
  const trouble = await decodeTrouble(best.payload, key, setting);
  if (trouble === null) return best;
  const other = best === packed || best.isProven ? null : packed;
  if (other !== null && (await decodeTrouble(other.payload, key, setting)) === null) return other;
  return { reason: `cannot be fully decoded: ${trouble}` };
}

/**
 * Prefers the bytes in the shard, unless only the source file is verified. Unverified bytes are verified by an equal
 * source file.
 */
function better(stored: FieldRecovery, packed: FieldRecovery | null): FieldRecovery {
  if (packed === null || 'reason' in packed) return stored;
  if ('reason' in stored) return packed;
  if (stored.isProven) return stored;
  if (isSame(packed.payload, stored.payload)) return { ...stored, isProven: true };
  return packed.isProven ? packed : stored;
}

function isSame(a: Payload, b: Payload): boolean {
  return a.bytes === b.bytes && a.crc32 === b.crc32;
}

async function fromShard(
  { places, crc32: expected }: ExpectedField,
  key: string,
  setting: RecoverySetting,
): Promise<FieldRecovery> {
  let trouble: FieldRecovery | null = null;
  for (const place of setting.source === null ? [] : places) {
    const payload = await payloadAt(setting.source!, place, key, setting);
    if (typeof payload === 'string') trouble ??= { reason: payload };
    else if (expected === null) return { payload, from: 'shard', isProven: false };
    else if (payload.crc32 === expected) return { payload, from: 'shard', isProven: true };
    else {
      const reason = `has changed: crc32 ${crc32Hex(payload.crc32)}, the index says ${crc32Hex(expected)}`;
      trouble ??= { reason };
    }
  }
  return trouble ?? { reason: 'is missing' };
}

/** Returns the payload at a position, or a description of its fault. */
async function payloadAt(
  source: Source,
  { offset, bytes, msgpack }: FieldPosition,
  key: string,
  { shard, maxSampleBytes }: RecoverySetting,
): Promise<Payload | string> {
  if (offset + bytes > source.size) return 'extends past the end of the shard';
  const isValue = msgpack === true;
  if (isValue && bytes > maxSampleBytes) throw sampleTooLarge(shard, key, bytes, maxSampleBytes);
  try {
    if (!isValue && bytes > HELD_BYTES) return payloadIn(source.location, offset, bytes);
    const stored = new Uint8Array(bytes);
    await source.readAt(offset, stored);
    return heldPayload(fieldPayload(stored, msgpack));
  } catch (error) {
    if (error instanceof FileError) return `cannot be read (${(error.cause as Error).message})`;
    return `is no longer a valid msgpack value (${(error as Error).message})`;
  }
}

/** Returns the bytes of the source file, if they are known to be the packed ones. */
async function fromFiles(
  { name, bytes, isInteger, crc32: expected }: ExpectedField,
  key: string,
  { source, cls }: KnownFacts,
  { packed }: RecoverySetting,
): Promise<{ payload: Payload; from: 'source'; isProven: boolean } | null> {
  // The class number is in the index, not in a file.
  const number = name === 'cls' && cls >= 0 ? heldPayload(Buffer.from(String(cls))) : null;
  for (const payload of [number, (await packed?.read(key, source, name)) ?? null]) {
    if (payload === null) continue;
    const isProven = expected === null ? payload === number && isInteger : payload.crc32 === expected;
    if (isProven || (expected === null && bytes === payload.bytes)) return { payload, from: 'source', isProven };
  }
  return null;
}

async function decodeTrouble(
  image: Payload,
  key: string,
  { shard, loadChecker, maxSampleBytes }: RecoverySetting,
): Promise<string | null> {
  if (image.bytes > maxSampleBytes) throw sampleTooLarge(shard, key, image.bytes, maxSampleBytes);
  const checker = await loadChecker();
  try {
    await checker.check(image.whole());
    return null;
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    return error.message;
  }
}
