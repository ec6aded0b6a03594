/**
 * Errors of shardtool. One class a kind of trouble; each carries where the trouble is and one sentence that says what to do.
 */

import { ShardtoolError, type Whereabouts } from '@shardtool/storage';

export {
  FileChangedError,
  FileError,
  FileExistsError,
  NoSuchFileError,
  OptionError,
  RefusedError,
  ShardtoolError,
  type Whereabouts,
} from '@shardtool/storage';

/** The bytes of a shard are not what its layout says: a wrong checksum, an impossible length, a malformed record. */
export class DamagedShardError extends ShardtoolError {}

/** A shard ends before what it announces. */
export class CutShardError extends DamagedShardError {}

/** A shard holds something that is no plain file: a link, a device, a sparse file. */
export class UnsupportedEntryError extends ShardtoolError {}

/** The name of an entry leaves the folder it stands in, is not text, or would not read back as the same key and field. */
export class EntryNameError extends ShardtoolError {}

/** A key stands twice in one shard, or a field twice in one sample. `otherOffset` is where it stood first. */
export class DuplicateKeyError extends ShardtoolError {
  readonly otherOffset: number | undefined;

  constructor(where: Whereabouts & { otherOffset?: number }, message: string) {
    super(where, message);
    this.otherOffset = where.otherOffset;
  }
}

/**
 * An image cannot be decoded: it is damaged, of an unsupported kind, or larger than allowed. The codecs, which know
 * neither shard nor key, leave both out; `reason` is the sentence without them.
 */
export class SampleDecodeError extends ShardtoolError {
  readonly reason: string;

  constructor(where: Whereabouts, reason: string, options?: { cause?: unknown }) {
    super(
      where,
      where.key === undefined ? reason : `${where.shard ?? ''}: image "${where.key}" is bad: ${reason}`,
      options,
    );
    this.reason = reason;
  }
}

/** The index of a shard is missing a column, damaged, or not written by shardtool. */
export class ShardIndexError extends ShardtoolError {}

/** A crop index is damaged, or was not written by shardtool. */
export class CropIndexError extends ShardtoolError {}

/** dataset.json is not what shardtool writes. */
export class ManifestError extends ShardtoolError {}

/** A folder without dataset.json: the pack was interrupted, or the folder is no dataset. */
export class UnfinishedPackError extends ShardtoolError {}

/** A file was written by a newer shardtool. `found` is its version, `known` the newest that this one reads. */
export class VersionError extends ShardtoolError {
  readonly found: number;
  readonly known: number;

  constructor(where: Whereabouts & { found: number; known: number }, message: string) {
    super(where, message);
    this.found = where.found;
    this.known = where.known;
  }
}

/** Why an image's header cannot be used. */
export type ImageTrouble = 'empty' | 'not-an-image' | 'cut' | 'no-size' | 'too-large' | 'unsupported';

/** The header of an image says that it cannot be packed or decoded. */
export class ImageError extends ShardtoolError {
  readonly trouble: ImageTrouble;

  constructor(where: Whereabouts & { trouble: ImageTrouble }, message: string) {
    super(where, message);
    this.trouble = where.trouble;
  }
}

/** A key is longer than the layout takes: LMDB's keys have 511 bytes at most. */
export class KeyLengthError extends ShardtoolError {}

/** A sample is larger than is allowed, all its fields together. `bytes` is its size, `limit` what is allowed. */
export class SampleSizeError extends ShardtoolError {
  readonly bytes: number;
  readonly limit: number;

  constructor(where: Whereabouts & { bytes: number; limit: number }, message: string) {
    super(where, message);
    this.bytes = where.bytes;
    this.limit = where.limit;
  }
}

/** A shard is of a kind that shardtool does not read: an LMDB file with duplicate keys, or of another version or machine. */
export class UnsupportedShardError extends ShardtoolError {}

/** The bytes of a field are not those that were packed. crc32 as unsigned numbers. */
export class SampleChecksumError extends ShardtoolError {
  readonly field: string;
  readonly expected: number;
  readonly actual: number;

  constructor(where: Whereabouts & { field: string; expected: number; actual: number }, message: string) {
    super(where, message);
    this.field = where.field;
    this.expected = where.expected;
    this.actual = where.actual;
  }
}

/** A field is no array of NumPy, or not one that is read here. The message is a sentence without shard and key. */
export class NpyError extends ShardtoolError {}

/** A worker thread ended before its work was done, or could not start. `cause` has what it threw, if anything. */
export class WorkerDiedError extends ShardtoolError {}

/** The labels file, or the list of files or classes, says something that does not fit. `line` counts from 1. */
export class LabelsError extends ShardtoolError {
  readonly line: number | undefined;

  constructor(where: Whereabouts & { line?: number | undefined }, message: string, options?: { cause?: unknown }) {
    super(where, message, options);
    this.line = where.line;
  }
}
