import { resolve } from 'node:path';
import { isRemote, type StorageOptions } from '@shardtool/storage';
import type { FileAccess } from './ahead/file-access.js';
import type { InFlight } from './ahead/in-flight.js';
import { bucketFiles } from './bucket/bucket-files.js';
import { scanBucket } from './bucket/scan-bucket.js';
import { FOLDER_FILES } from './folder/folder-files.js';
import { checkSource, checkSourceAhead, type Scan, type ScanOptions, scanFolder } from './folder/scan.js';

/** A kind of location that images are packed from. */
interface SourceKind {
  /** Throws `SourceError` if the location is not of this kind, as far as that is known without listing it. */
  check(root: string, flight: InFlight | null): void | Promise<void>;
  scan(root: string, options: ScanOptions): Promise<Scan>;
  /** How its files are read when many are read concurrently. */
  files(root: string, storage: StorageOptions | undefined): FileAccess;
}

const FOLDER: SourceKind = {
  check: (root, flight) => (flight === null ? checkSource(root) : checkSourceAhead(root, flight)),
  scan: scanFolder,
  files: () => FOLDER_FILES,
};
const BUCKET: SourceKind = { check: () => undefined, scan: scanBucket, files: bucketFiles };

export function sourceKind(location: string): SourceKind {
  return isRemote(location) ? BUCKET : FOLDER;
}

/** Prefix of every path of a source: its absolute path or its location, with a trailing "/". */
export function rootOf(source: string): string {
  return isRemote(source) ? source.replace(/\/*$/, '/') : `${resolve(source)}/`;
}
