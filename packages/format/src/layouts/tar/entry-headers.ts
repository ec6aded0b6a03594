import { BLOCK_BYTES, EntryType, encodeHeader, padded } from './header.js';
import { encodePaxRecord } from './pax.js';

/** The name that Python's tarfile gives to pax headers; readers ignore it. */
const PAX_NAME = '././@PaxHeader';

/** Room that suffices for the headers of a file with this name: a pax header, its records, and the file's own. */
export function maxHeaderBytes(name: string): number {
  return 4 * BLOCK_BYTES + 3 * name.length;
}

/**
 * Writes the headers of a file at `at` and returns where its payload begins. A ustar header alone where name and size
 * fit one; otherwise pax records for what does not (POSIX.1-2017 pax) and then a header that stands in for it. Names
 * that are not ASCII are such a case too, since ustar does not say how they are encoded.
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

/** A name that fits, for readers that do not know pax. */
function standIn(name: string): string {
  const base = name.slice(name.lastIndexOf('/') + 1);
  return base.replace(/[^ -~]/g, '_').slice(0, 100);
}
