import { type ErrorContext, type Sentence, ShardtoolError } from '@shardtool/base';

export { LabelsError } from '@shardtool/base';

/**
 * The source folder, or a folder in it, is missing, is not a folder, or cannot be read. Also thrown for a dangling
 * symbolic link without an extension.
 */
export class SourceError extends ShardtoolError {
  static override readonly kind: string = 'SourceError';
}

/** The file system of the source did not answer in time. Check its mount, then pack again. */
export class SourceTimeoutError extends ShardtoolError {
  static override readonly kind: string = 'SourceTimeoutError';
}

/** The source contains nothing that can be packed or converted. */
export class NoImagesError extends ShardtoolError {
  static override readonly kind: string = 'NoImagesError';
}

/** A file name is not valid UTF-8, so no key or index could contain it. */
export class FileNameError extends ShardtoolError {
  static override readonly kind: string = 'FileNameError';
}

/** A symbolic link points to a folder that contains it. */
export class LinkLoopError extends ShardtoolError {
  static override readonly kind: string = 'LinkLoopError';
}

/** Two files would get the same key, or the same field of a key. `paths` has both. */
export class KeyCollisionError extends ShardtoolError {
  static override readonly kind: string = 'KeyCollisionError';

  readonly paths: readonly string[];

  constructor(where: ErrorContext & { paths: readonly string[] }, message: string | Sentence) {
    super({ ...where, path: where.paths[0] }, message);
    this.paths = where.paths;
  }
}

/** The output folder is not empty. */
export class OutputNotEmptyError extends ShardtoolError {
  static override readonly kind: string = 'OutputNotEmptyError';
}

/** Another task of the same job has finished the part. */
export class PartFinishedError extends OutputNotEmptyError {
  static override readonly kind: string = 'PartFinishedError';
}

/** Another process is writing to the output folder. */
export class OutputLockedError extends ShardtoolError {
  static override readonly kind: string = 'OutputLockedError';
}

/** The output's disk has too little space or is full. */
export class DiskFullError extends ShardtoolError {
  static override readonly kind: string = 'DiskFullError';
}

/** A file cannot be packed: it is unreadable, changed during the pack, or is not an image of a known kind. */
export class BadFileError extends ShardtoolError {
  static override readonly kind: string = 'BadFileError';
}

/** More files were bad than `maxBad` allows. */
export class TooManyBadError extends ShardtoolError {
  static override readonly kind: string = 'TooManyBadError';
}

/** A dataset was changed by another process while this one changed it: nothing was committed. */
export class DatasetChangedError extends ShardtoolError {
  static override readonly kind: string = 'DatasetChangedError';
}

/** A pack cannot be resumed, because the source or the options differ from those that it was started with. */
export class PlanChangedError extends ShardtoolError {
  static override readonly kind: string = 'PlanChangedError';
}

/** The record of a pack's plan is damaged, or was written by a newer version. */
export class PlanRecordError extends ShardtoolError {
  static override readonly kind: string = 'PlanRecordError';
}

/** A dataset cannot be finalized, because some of its shards are not finished. */
export class PartsMissingError extends ShardtoolError {
  static override readonly kind: string = 'PartsMissingError';
}
