import type { IndexPart, LoadedIndex, PartOfIndex, Source } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import type { LoadInspection } from './inspection-columns.js';

/** Reads all of a file of this machine. Throws {@link FileError}. */
export type ReadFile = (path: string) => Promise<Uint8Array>;

/** One shard of a dataset. */
export interface ShardFile {
  /** As messages name it: `000000.tar`. */
  readonly name: string;
  /** The file to read; for LMDB the `data.mdb` inside the folder. */
  readonly path: string;
  /** Bytes of the file. */
  /** How the file, and what lies beside it, is asked for where it is remote. */
  readonly storage?: StorageOptions | undefined;
  readonly bytes: number;
  readonly samples: number;
  /** Estimated bytes of `samples`, if an overlay, a split or a list of keys hides other samples of the file. Default: `bytes`. */
  readonly sampleBytes?: number | undefined;
  /** Of the file, in hexadecimal, as the manifest has it. */
  readonly crc32?: string | undefined;
  /** What the storage called the version of the file when it was opened: another one is an error. Absent if it does not say. */
  readonly version?: string | undefined;
  /** A sample of more bytes is not read. Default: 1 GiB. */
  readonly maxSampleBytes?: number | undefined;
  /** Opens a file whose payloads do not lie in it as they are: all reading goes through this. Absent: `path` is read as it is. */
  readonly open?: (() => Promise<Source>) | undefined;
  /** Labels can be had without finding out where payloads lie, which costs much more. */
  readonly hasLabelsApart?: true;
  /** Reads the index, or has it from when it was made. `read`: what reads its file, where that is not to be this thread. */
  loadIndex(read?: ReadFile): Promise<LoadedIndex>;
  /** Reads some parts of it, which costs less. */
  loadParts<P extends IndexPart>(parts: readonly P[]): Promise<PartOfIndex<P>>;
  /** Where its crop index is, if it has one; there may be no such file. */
  findCropIndex(): Promise<string | null>;
  /** Reads what `shardtool inspect` keeps beside it. Absent: nothing can lie beside it. */
  readonly loadInspection?: LoadInspection | undefined;
}

/** Bytes of the samples of a shard, without those that an overlay, a split or a list of keys hides. */
export function sampleBytesOf({ sampleBytes, bytes }: ShardFile): number {
  return sampleBytes ?? bytes;
}
