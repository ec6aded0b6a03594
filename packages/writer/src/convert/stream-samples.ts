import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  DamagedShardError,
  DuplicateKeyError,
  ShardtoolError,
  splitEntryName,
  tarFaults,
  whyUnsafe,
} from '@shardtool/format';
import { extract, type Header } from 'tar-stream';
import { plainBytes } from './plain-bytes.js';

/** One sample out of a stream. */
export interface StreamedSample {
  readonly key: string;
  /** In the order of the stream; a payload is in the pieces in which it came. */
  readonly fields: StreamedField[];
}

export interface StreamedField {
  readonly name: string;
  readonly bytes: number;
  readonly pieces: readonly Uint8Array[];
}

const BLOCK_BYTES = 512;
/** v7 archives, which have no magic, are read too; tar-stream's types do not know the option. */
const READING: Parameters<typeof extract>[0] & { readonly allowUnknownFormat: boolean } = { allowUnknownFormat: true };
/** What tar-stream calls plain files. */
const PLAIN = new Set<string>(['file', 'contiguous-file']);

/**
 * Yields the samples of a tar that comes as a stream, gzip or not, grouped as WebDataset does it: neighbours with one key.
 * Holds one sample. `name` is the stream's, for messages; `onSkipped` hears of files that belong to no sample. Throws a
 * tagged error for a damaged or cut archive, for links and devices, for names that lead out of their folder and for a
 * field that comes twice in a sample.
 */
export async function* streamSamples(
  input: Readable,
  name: string,
  onSkipped: () => void,
): AsyncGenerator<StreamedSample> {
  const archive = extract(READING);
  const tail = new Tail();
  // Its error is met by whoever reads the entries.
  pipeline(plainBytes(input), (chunks) => tail.watch(chunks), archive).catch(() => undefined);
  let sample: StreamedSample | null = null;
  try {
    for await (const entry of archive) {
      const file = await takeFile(entry, name);
      tail.fileEndsAt(file.end);
      const named = file.isPlain ? splitEntryName(entry.header.name) : null;
      if (named === null) {
        if (file.isPlain) onSkipped();
        continue;
      }
      if (sample !== null && sample.key !== named.key) {
        yield sample;
        sample = null;
      }
      sample ??= { key: named.key, fields: [] };
      addField(sample, { name: named.field, bytes: entry.header.size, pieces: file.pieces }, name);
    }
  } catch (error) {
    throw error instanceof ShardtoolError ? error : unreadable(name, error as Error);
  }
  if (!tail.isWhole) throw tarFaults.cutBeforeEnd(name, tail.position);
  if (sample !== null) yield sample;
}

/** An entry of tar-stream; its types do not know that it says where the payload begins. */
interface Entry extends AsyncIterable<unknown> {
  readonly header: Header & { readonly byteOffset?: number };
}

interface TakenFile {
  readonly pieces: readonly Uint8Array[];
  /** Where in the archive what follows it begins. */
  readonly end: number;
  /** False for a folder. */
  readonly isPlain: boolean;
}

/** Takes an entry out of the stream, which then goes on. Throws where it is neither a plain file nor a folder. */
async function takeFile(entry: Entry, shard: string): Promise<TakenFile> {
  const { name, type, size, byteOffset = 0, pax } = entry.header;
  const isSparse = Object.keys(pax ?? {}).some((record) => record.startsWith('GNU.sparse.'));
  const isPlain = PLAIN.has(type) && !isSparse;
  if (!isPlain && type !== 'directory') {
    throw tarFaults.unsupported(
      shard,
      byteOffset - BLOCK_BYTES,
      name,
      isSparse ? 'a sparse file' : `a ${type ?? 'special file'}`,
    );
  }
  if (name.includes('\ufffd')) throw tarFaults.notText(shard, byteOffset - BLOCK_BYTES);
  const reason = whyUnsafe(name);
  if (reason !== null) throw tarFaults.unsafeName(shard, byteOffset - BLOCK_BYTES, name, reason);
  const pieces: Uint8Array[] = [];
  for await (const piece of entry) pieces.push(piece as Uint8Array);
  return { pieces, end: byteOffset + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES, isPlain };
}

function addField(sample: StreamedSample, field: StreamedField, shard: string): void {
  const { key } = sample;
  if (sample.fields.some(({ name }) => name === field.name)) {
    const message = `${shard}: sample ${JSON.stringify(key)} has the field "${field.name}" twice; write the archive anew with one of them.`;
    throw new DuplicateKeyError({ shard, key }, message);
  }
  sample.fields.push(field);
}

function unreadable(shard: string, cause: Error): DamagedShardError {
  const message = `${shard}: this cannot be read as a tar (${cause.message}); it is damaged or was cut off: fetch or write it again.`;
  return new DamagedShardError({ shard }, message, { cause });
}

/** Watches the bytes go by, to tell a whole archive, which ends with zeros behind its last file, from one that was cut. */
class Tail {
  position = 0;
  #lastFileEnd = 0;
  /** Behind the last byte that is not 0. */
  #dataEnd = 0;

  async *watch(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      let used = chunk.length;
      while (used > 0 && chunk[used - 1] === 0) used--;
      if (used > 0) this.#dataEnd = this.position + used;
      this.position += chunk.length;
      yield chunk;
    }
  }

  fileEndsAt(position: number): void {
    this.#lastFileEnd = position;
  }

  get isWhole(): boolean {
    return this.#dataEnd <= this.#lastFileEnd && this.position >= this.#lastFileEnd + BLOCK_BYTES;
  }
}
