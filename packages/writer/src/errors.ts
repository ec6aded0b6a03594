import { type ErrorContext, ShardtoolError } from '@shardtool/base';

export { LabelsError } from '@shardtool/base';

/** The folder to be packed, or one in it, is missing, is no folder, or cannot be read; also a link without an ending that leads nowhere. */
export class SourceError extends ShardtoolError {
  static override readonly kind: string = 'SourceError';
}

/** The file system of the source has not answered in time. Look after its mount, then pack again. */
export class SourceTimeoutError extends ShardtoolError {
  static override readonly kind: string = 'SourceTimeoutError';
}

/** The source holds nothing that could be packed or converted. */
export class NoImagesError extends ShardtoolError {
  static override readonly kind: string = 'NoImagesError';
}

/** A file's name is not UTF-8, so no key, index or other program could name it. */
export class FileNameError extends ShardtoolError {
  static override readonly kind: string = 'FileNameError';
}

/** A symbolic link leads back to a folder above itself. */
export class LinkLoopError extends ShardtoolError {
  static override readonly kind: string = 'LinkLoopError';
}

/** Two files would end at the same key, or at the same field of a key. `paths` has both. */
export class KeyCollisionError extends ShardtoolError {
  static override readonly kind: string = 'KeyCollisionError';

  readonly paths: readonly string[];

  constructor(where: ErrorContext & { paths: readonly string[] }, message: string) {
    super({ ...where, path: where.paths[0] }, message);
    this.paths = where.paths;
  }
}

/** The output folder holds something already. */
export class OutputNotEmptyError extends ShardtoolError {
  static override readonly kind: string = 'OutputNotEmptyError';
}

/** Another pack is at work in the output folder. */
export class OutputLockedError extends ShardtoolError {
  static override readonly kind: string = 'OutputLockedError';
}

/** The output's disk has too little room, or ran out of it. */
export class DiskFullError extends ShardtoolError {
  static override readonly kind: string = 'DiskFullError';
}

/** A file cannot be packed: unreadable, changed meanwhile, or not an image that is known. */
export class BadFileError extends ShardtoolError {
  static override readonly kind: string = 'BadFileError';
}

/** More files were bad than `maxBad` allows. */
export class TooManyBadError extends ShardtoolError {
  static override readonly kind: string = 'TooManyBadError';
}

/** A pack that is to go on finds another source, or other options, than those that it began with. */
export class PlanChangedError extends ShardtoolError {
  static override readonly kind: string = 'PlanChangedError';
}

/** The record of a pack's plan is damaged, or a newer version wrote it. */
export class PlanRecordError extends ShardtoolError {
  static override readonly kind: string = 'PlanRecordError';
}

/** A set of shards is to be committed before all of them are finished. */
export class PartsMissingError extends ShardtoolError {
  static override readonly kind: string = 'PartsMissingError';
}
