import { crc32, crc32Hex, ShardtoolError } from '@shardtool/base';
import { fieldPayload, isImageField } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { ShardFaults } from './faults.js';
import type { FrontToBack } from './front-to-back.js';

/** One field of one sample, to be read and checked. */
export interface ExpectedPayload {
  readonly key: string;
  readonly field: string;
  readonly offset: number;
  readonly bytes: number;
  /** Whether its bytes are a msgpack value whose text was packed. */
  readonly msgpack: boolean;
  /** Of what was packed; null where neither an index nor the shard says it. */
  readonly crc32: number | null;
  /** Which of the two says it. */
  readonly saidBy: 'index' | 'shard';
}

/** Larger payloads are summed up piece by piece. */
const HELD_BYTES = 64 * 2 ** 20;
/** Larger images are not decoded. */
const DECODED_BYTES = 2 ** 30;
const PIECE_BYTES = 4 * 2 ** 20;

/**
 * Compares every payload with its crc32 and, with a `checker`, decodes every image whole. Returns how many images were
 * decoded although something in them is odd.
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
 * Names the samples without an image of a shard whose others have one: earlier versions packed such, and loaders do not take
 * them. A shard without any image is for something else.
 */
export function checkImages(payloads: readonly ExpectedPayload[], faults: ShardFaults): void {
  const withImage = new Set(payloads.filter(({ field }) => isImageField(field)).map(({ key }) => key));
  if (withImage.size === 0) return;
  for (const key of new Set(payloads.map((payload) => payload.key))) {
    if (!withImage.has(key))
      faults.addUndecodable('it has no image, which loaders want of every sample; leave it out (--exclude-keys)', key);
  }
}

/** What is wrong with a payload, as the end of "field x ..."; null where nothing is. */
function checkSum({ bytes, msgpack, crc32: expected, saidBy }: ExpectedPayload, stored: Uint8Array): string | null {
  if (stored.length < bytes) return `ends behind the end of the shard`;
  if (expected === null) return null;
  try {
    return compare(crc32(fieldPayload(stored, msgpack)), expected, saidBy);
  } catch (error) {
    return `is no msgpack value any more (${(error as Error).message})`;
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
    if (piece.length < wanted) return `ends behind the end of the shard`;
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
    faults.addUndecodable(`field "${field}" cannot be decoded whole: ${error.message}`, key);
    return 0;
  }
}
