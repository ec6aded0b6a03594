import { crc32, crc32Hex, ShardtoolError } from '@shardtool/base';
import { fieldPayload, isImageField } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { ShardFaults } from './faults.js';
import type { FrontToBack } from './front-to-back.js';

/** One field of one sample to read and check. */
export interface ExpectedPayload {
  readonly key: string;
  readonly field: string;
  readonly offset: number;
  readonly bytes: number;
  /** True if its bytes are a msgpack value from which the packed text is made. */
  readonly msgpack: boolean;
  /** crc32 of the packed bytes; null if neither an index nor the shard has it. */
  readonly crc32: number | null;
  /** Source of the crc32. */
  readonly saidBy: 'index' | 'shard';
}

/** Larger payloads are checksummed piece by piece. */
const HELD_BYTES = 64 * 2 ** 20;
/** Larger images are not decoded. */
const DECODED_BYTES = 2 ** 30;
const PIECE_BYTES = 4 * 2 ** 20;

/**
 * Compares every payload with its crc32. With a `checker` it also decodes every image completely. Returns the number of
 * images that were decoded with warnings.
 */
export async function checkPayloads(
  payloads: readonly ExpectedPayload[],
  file: FrontToBack,
  checker: Checker | null,
  faults: ShardFaults,
): Promise<number> {
  let warnings = 0;
  for (const payload of payloads.toSorted((a, b) => a.offset - b.offset)) {
    const isImage = checker !== null && isImageField(payload.field);
    const mayHold = payload.bytes <= (isImage || payload.msgpack ? DECODED_BYTES : HELD_BYTES);
    const bytes = mayHold ? await file.piece(payload.offset, payload.bytes) : null;
    const trouble = bytes === null ? await checkPieces(payload, file) : checkSum(payload, bytes);
    if (trouble !== null) faults.add(`field "${payload.field}" ${trouble}`, payload.key);
    else if (isImage && bytes === null) {
      faults.addUndecodable(`field "${payload.field}" is too large to be decoded`, payload.key);
    } else if (isImage) warnings += await checkImage(checker, payload, bytes!, faults);
  }
  return warnings;
}

/**
 * Reports samples without an image in a shard whose other samples have one. Earlier versions packed them, and loaders
 * reject them. A shard without any image is allowed.
 */
export function checkImages(payloads: readonly ExpectedPayload[], faults: ShardFaults): void {
  const withImage = new Set(payloads.filter(({ field }) => isImageField(field)).map(({ key }) => key));
  if (withImage.size === 0) return;
  for (const key of new Set(payloads.map((payload) => payload.key))) {
    if (!withImage.has(key))
      faults.addUndecodable('it has no image, which loaders require; exclude it by its key', key);
  }
}

/** Describes the fault of a payload, as the end of "field x ..."; null if it is intact. */
function checkSum({ bytes, msgpack, crc32: expected, saidBy }: ExpectedPayload, stored: Uint8Array): string | null {
  if (stored.length < bytes) return `extends past the end of the shard`;
  if (expected === null) return null;
  try {
    return compare(crc32(fieldPayload(stored, msgpack)), expected, saidBy);
  } catch (error) {
    return `is no longer a valid msgpack value (${(error as Error).message})`;
  }
}

async function checkPieces(
  { offset, bytes, crc32: expected, saidBy }: ExpectedPayload,
  file: FrontToBack,
): Promise<string | null> {
  let sum = 0;
  for (let done = 0; done < bytes; done += PIECE_BYTES) {
    const wanted = Math.min(PIECE_BYTES, bytes - done);
    const piece = await file.piece(offset + done, wanted);
    if (piece.length < wanted) return `extends past the end of the shard`;
    sum = crc32(piece, sum);
  }
  return expected === null ? null : compare(sum, expected, saidBy);
}

function compare(actual: number, expected: number, saidBy: ExpectedPayload['saidBy']): string | null {
  if (actual === expected) return null;
  return `has changed: crc32 ${crc32Hex(actual)}, the ${saidBy} says ${crc32Hex(expected)}`;
}

async function checkImage(
  checker: Checker,
  { field, key }: ExpectedPayload,
  bytes: Uint8Array,
  faults: ShardFaults,
): Promise<number> {
  try {
    return (await checker.check(bytes)).warnings;
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    faults.addUndecodable(`field "${field}" cannot be fully decoded: ${error.message}`, key);
    return 0;
  }
}
