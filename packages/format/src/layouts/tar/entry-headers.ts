import { BLOCK_BYTES, EntryType, encodeHeader, padded } from './header.js';
import { encodePaxRecord } from './pax.js';

/** The name that Python's tarfile gives to pax headers. Readers ignore it. */
const PAX_NAME = '././@PaxHeader';

/** An upper bound for the size of the headers of a file with this name, in bytes: a pax header, its records, and the file's own header. */
export function maxHeaderBytes(name: string): number {
  return 4 * BLOCK_BYTES + 3 * name.length;
}

/**
 * Writes the headers of a file at `at` and returns the offset of its payload. A ustar header is enough if name and size
 * fit; otherwise pax records carry what does not fit (POSIX.1-2017 pax), followed by a header for readers without pax.
 * Names that are not ASCII also need pax, because ustar does not define their encoding.
 */
export function encodeEntryHeaders(target: Uint8Array, at: number, name: string, bytes: number): number {
  if (encodeHeader(target, at, name, bytes)) return at + BLOCK_BYTES;
  const nameFits = encodeHeader(target, at, name, 0);
  const sizeFits = encodeHeader(target, at, '', bytes);
  const records = Buffer.concat([
    nameFits ? Buffer.alloc(0) : encodePaxRecord('path', name),
    sizeFits ? Buffer.alloc(0) : encodePaxRecord('size', String(bytes)),
  ]);
  encodeHeader(target, at, PAX_NAME, records.length, EntryType.LocalPax);
  const recordsAt = at + BLOCK_BYTES;
  const headerAt = recordsAt + padded(records.length);
  target.set(records, recordsAt);
  target.fill(0, recordsAt + records.length, headerAt);
  encodeHeader(target, headerAt, nameFits ? name : standIn(name), sizeFits ? bytes : 0);
  return headerAt + BLOCK_BYTES;
}

/** A shortened name for readers that do not know pax. */
function standIn(name: string): string {
  const base = name.slice(name.lastIndexOf('/') + 1);
  return base.replace(/[^ -~]/g, '_').slice(0, 100);
}
