import type { IncomingHttpHeaders } from 'node:http';
import { FileError } from '@shardtool/base';

/** Codings that change the bytes (RFC 9110, section 8.4.1, and RFC 8878). Stores also report others, such as `aws-chunked`. */
const COMPRESSION = /\b(?:gzip|deflate|compress|br|zstd)\b/i;

/**
 * The compression of the body of an answer, as its server reports it. Requests ask for none, but a server or a proxy may add it.
 * The server may also describe a stored file, such as a .tar.gz, in this way.
 */
export function compressionOf(headers: IncomingHttpHeaders): string | undefined {
  return COMPRESSION.exec(headers['content-encoding'] ?? '')?.[0];
}

/** The error for a file that its server compresses: the stored file itself may be right. */
export function compressedByServer(path: string, compression: string): FileError {
  const message = `${path} cannot be read: its server compresses it (${compression}), which must be turned off; or copy the dataset to this machine first.`;
  return new FileError({ path }, message);
}
