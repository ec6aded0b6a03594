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
  /** The file is as it was packed: what is found in it is right. */
  readonly isFileWhole: boolean;
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
  | { readonly fields: readonly RecoveredField[]; readonly isRestored: boolean; readonly isUnproven: boolean }
  | { readonly reason: string };

type FieldRecovery =
  | { readonly payload: Uint8Array; readonly from: 'shard' | 'source'; readonly isProven: boolean }
  | { readonly reason: string };

/**
 * Finds every field of a sample: in the shard where its checksum is right, else in the packed folder. Where the checksum
 * is lost as well, an image counts that can be decoded whole.
 */
export async function recoverSample(
  sample: ExpectedSample,
  facts: SampleFacts,
  setting: RecoverySetting,
): Promise<Recovery> {
  const fields: RecoveredField[] = [];
  const reasons: string[] = [];
  let isRestored = false;
  let isUnproven = false;
  for (const field of sample.fields) {
    const recovery = await recoverField(field, sample.key, facts, setting);
    if ('reason' in recovery) {
      reasons.push(`field "${field.name}" ${recovery.reason}`);
      continue;
    }
    fields.push({ name: field.name, payload: recovery.payload });
    isRestored ||= recovery.from === 'source';
    isUnproven ||= !recovery.isProven;
  }
  if (fields.length === 0 && reasons.length === 0) reasons.push('nothing of it is left');
  return reasons.length > 0 ? { reason: reasons.join('; ') } : { fields, isRestored, isUnproven };
}

async function recoverField(
  field: ExpectedField,
  key: string,
  facts: SampleFacts,
  setting: RecoverySetting,
): Promise<FieldRecovery> {
  const recovery = (await fromShard(field, setting)) ?? { reason: 'is missing' };
  if (!('reason' in recovery)) {
    const isJudged = isImageField(field.name) && (setting.decode || !recovery.isProven);
    const trouble = isJudged ? await decodeTrouble(recovery.payload, setting.loadChecker) : null;
    if (trouble === null) return recovery;
    if (recovery.isProven) return { reason: `cannot be decoded whole: ${trouble}` };
    return fromFiles(field, key, facts, setting) ?? { reason: `cannot be decoded whole: ${trouble}` };
  }
  const restored = fromFiles(field, key, facts, setting);
  const isBad = restored !== null && setting.decode && isImageField(field.name);
  const trouble = isBad ? await decodeTrouble(restored.payload, setting.loadChecker) : null;
  if (trouble !== null) return { reason: `cannot be decoded whole: ${trouble}` };
  return restored ?? recovery;
}

async function fromShard(
  { places, crc32: expected }: ExpectedField,
  setting: RecoverySetting,
): Promise<FieldRecovery | null> {
  const { source, isFileWhole } = setting;
  let trouble: FieldRecovery | null = null;
  for (const place of source === null ? [] : places) {
    const payload = await payloadAt(source!, place);
    if (typeof payload === 'string') trouble ??= { reason: payload };
    else if (expected === null) return { payload, from: 'shard', isProven: isFileWhole };
    else if (crc32(payload) === expected) return { payload, from: 'shard', isProven: true };
    else {
      const reason = `has changed: crc32 ${crc32Hex(crc32(payload))}, the index says ${crc32Hex(expected)}`;
      trouble ??= { reason };
    }
  }
  return trouble;
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

/** What the field was packed from, where that is known to be the same still. */
function fromFiles(
  { name, places, crc32: expected }: ExpectedField,
  key: string,
  { source, cls }: SampleFacts,
  { files }: RecoverySetting,
): { payload: Uint8Array; from: 'source'; isProven: true } | null {
  // The class number comes from no file, and the index has it.
  const number = name === 'cls' && cls >= 0 ? Buffer.from(String(cls)) : null;
  for (const payload of [number, files?.read(key, source, name) ?? null]) {
    if (payload === null) continue;
    const isSame = expected === null ? places[0]?.bytes === payload.length : crc32(payload) === expected;
    if (isSame) return { payload, from: 'source', isProven: true };
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
