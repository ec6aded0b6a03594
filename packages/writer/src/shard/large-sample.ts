import { closeSync, openSync, readSync } from 'node:fs';
import type { FieldInPieces, IndexRows } from '@shardtool/format';
import { PIECE_BYTES } from '../source/ahead/file-access.js';
import { BadFile, changedFile, READ_NOW, unreadableFile } from '../source/source-file.js';
import type { NewField, PayloadOf, SampleFacts, SampleWriter } from './put-sample.js';

/** Samples larger than this are written in pieces, if the layout can do that. */
export const HELD_BYTES = 64 << 20;

/** True if a sample of this size is written in pieces. */
export function goesInPieces(bytes: number, writer: SampleWriter): boolean {
  return bytes > HELD_BYTES && writer.writeInPieces !== undefined;
}

/**
 * Like `putSample`, for a sample that {@link goesInPieces}. It keeps at most one piece of a field in memory. `factsOf`
 * receives the payloads of the fields in `seen`, or the first piece of those that have pieces. Returns the crc32 of
 * each field by name.
 */
export async function putLargeSample(
  writer: SampleWriter,
  rows: IndexRows,
  key: string,
  fields: readonly NewField[],
  seen: readonly string[],
  factsOf: (payloadOf: PayloadOf) => SampleFacts,
): Promise<ReadonlyMap<string, number>> {
  const heads = new Map<string, Uint8Array>();
  const sorted = fields
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((field) => inPieces(field, seen.includes(field.name) ? heads : null));
  const sums = await writer.writeInPieces!(key, sorted);
  rows.add({ key, fields: sorted, crc32: sums, ...factsOf((name) => heads.get(name ?? '')) });
  return new Map(sorted.map(({ name }, i) => [name, sums[i]!]));
}

/** Wraps a field with pieces, and stores its first piece in `heads`. */
function inPieces(field: NewField, heads: Map<string, Uint8Array> | null): FieldInPieces {
  const { name, bytes } = field;
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for await (const piece of field.pieces?.() ?? [filled(field)]) {
      // A copy, because the next piece may reuse the buffer.
      if (heads !== null && !heads.has(name)) heads.set(name, new Uint8Array(piece));
      yield piece;
    }
  }
  return { name, bytes, pieces };
}

function filled(field: NewField): Uint8Array {
  const payload = new Uint8Array(field.bytes);
  field.put(payload);
  return payload;
}

/**
 * Reads a source file in pieces; each is valid until the next one. Throws {@link BadFile} if the file cannot be read or
 * its size is no longer `bytes`.
 */
export function* filePieces(path: string, bytes: number): Generator<Uint8Array> {
  let fd: number | undefined;
  try {
    fd = openSync(path, READ_NOW);
    const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
    let done = 0;
    for (;;) {
      const read = readSync(fd, buffer, 0, PIECE_BYTES, done);
      if (read === 0) break;
      done += read;
      if (done > bytes) throw changedFile(path);
      yield buffer.subarray(0, read);
    }
    if (done !== bytes) throw changedFile(path);
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause) || cause instanceof BadFile) throw cause;
    throw unreadableFile(path, cause);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
