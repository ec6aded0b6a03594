import { constants } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { FileError, reasonOf } from '@shardtool/base';
import { isRemote, openSource, type StorageOptions, shownLocation } from '@shardtool/storage';
import { FileNameError, SourceError } from '../errors.js';

const READ_BYTES = 4 << 20;
const GZIP = /\.gz$/i;

/**
 * Yields the text of a file, local or in a bucket, in pieces, without a byte order mark. A file whose name ends with `.gz` is
 * decompressed. Throws SourceError if the file cannot be read, and FileNameError if it is not UTF-8.
 */
export async function* textPieces(location: string, storage?: StorageOptions): AsyncGenerator<string> {
  const path = shownLocation(location);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const bytes of bytesOf(location, storage)) yield decoder.decode(bytes, { stream: true });
    yield decoder.decode();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      const message = `The file ${path} is not UTF-8; convert it, for example with iconv.`;
      throw new FileNameError({ path }, message, { cause });
    }
    // The errors of storage are sentences that name the file.
    const message = cause instanceof FileError ? cause.message : `The file ${path} cannot be read: ${reasonOf(cause)}.`;
    throw new SourceError({ path }, message, { cause });
  }
}

/**
 * Yields the lines of a text file, many at a time, without their line feeds. A carriage return stays at the end of its line.
 * The last line is yielded only if it is not empty. Throws like {@link textPieces}.
 */
export async function* textLines(location: string, storage?: StorageOptions): AsyncGenerator<readonly string[]> {
  let rest: string[] = [];
  for await (const piece of textPieces(location, storage)) {
    const lines = piece.split('\n');
    // A line can be longer than a piece.
    rest.push(lines[0]!);
    if (lines.length === 1) continue;
    lines[0] = rest.join('');
    rest = [lines.pop()!];
    yield lines;
  }
  const last = rest.join('');
  if (last !== '') yield [last];
}

/** Returns the text of a file. Throws like {@link textPieces}, and SourceError if it is too long for a string. */
export async function readTextFile(location: string, storage?: StorageOptions): Promise<string> {
  const pieces: string[] = [];
  let length = 0;
  for await (const piece of textPieces(location, storage)) {
    length += piece.length;
    if (length > constants.MAX_STRING_LENGTH) {
      const path = shownLocation(location);
      const message = `The file ${path} has more than ${constants.MAX_STRING_LENGTH} characters; split it into several files.`;
      throw new SourceError({ path }, message);
    }
    pieces.push(piece);
  }
  return pieces.join('');
}

/** Returns the lines of a text file, without line feeds and carriage returns. Throws like {@link textPieces}. */
export async function readLines(location: string, storage?: StorageOptions): Promise<string[]> {
  const all: string[] = [];
  for await (const lines of textLines(location, storage)) {
    for (const line of lines) all.push(line.endsWith('\r') ? line.slice(0, -1) : line);
  }
  return all;
}

function bytesOf(location: string, storage: StorageOptions | undefined): AsyncIterable<Uint8Array> {
  const bytes = isRemote(location)
    ? Readable.from(piecesOf(location, storage))
    : createReadStream(location, { highWaterMark: READ_BYTES });
  if (!GZIP.test(location)) return bytes;
  const text = bytes.pipe(createGunzip());
  // `pipe` forwards neither an error to the reader of the decompressed text, nor an early stop to the file.
  bytes.once('error', (error: Error) => text.destroy(error));
  text.once('close', () => bytes.destroy());
  return text;
}

async function* piecesOf(location: string, storage: StorageOptions | undefined): AsyncGenerator<Uint8Array> {
  const source = await openSource(location, undefined, storage);
  try {
    for (let at = 0; at < source.size; at += READ_BYTES) {
      const piece = Buffer.allocUnsafe(Math.min(READ_BYTES, source.size - at));
      await source.readAt(at, piece);
      yield piece;
    }
  } finally {
    await source.close();
  }
}
