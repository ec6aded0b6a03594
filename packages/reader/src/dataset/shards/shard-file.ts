import type { IndexPart, LoadedIndex, PartOfIndex, Source } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import type { LoadInspection } from '../inspection-columns.js';

/** Reads all bytes of a local file. Throws {@link FileError}. */
export type ReadFile = (path: string) => Promise<Uint8Array>;

/** One shard of a dataset. */
export interface ShardFile {
  /** Name in messages: `000000.tar`. */
  readonly name: string;
  /** The file to read. For LMDB it is `data.mdb` in the folder. */
  readonly path: string;
  /** Options for requests of the file and its sidecar files, if they are remote. */
  readonly storage?: StorageOptions | undefined;
  /** Size of the file, in bytes. */
  readonly bytes: number;
  readonly samples: number;
  /** Estimated bytes of `samples`, if an overlay, a split or a list of keys hides other samples of the file. Default: `bytes`. */
  readonly sampleBytes?: number | undefined;
  /** Checksum of the file, in hexadecimal, from the manifest. */
  readonly crc32?: string | undefined;
  /**
   * Version of the file that the storage reported when the dataset was opened. If it changes, reading throws. Absent if
   * the storage reports no version.
   */
  readonly version?: string | undefined;
  /** Maximum size of a sample that is read, in bytes. Default: 1 GiB. */
  readonly maxSampleBytes?: number | undefined;
  /**
   * Opens a file whose payloads are not stored as plain bytes. All reads use this source. If absent, `path` is read
   * directly.
   */
  readonly open?: (() => Promise<Source>) | undefined;
  /** True if labels can be read without locating the payloads, which takes much longer. */
  readonly hasLabelsApart?: true;
  /** Returns the index, which is read or was made before. `read` reads the index file instead of this thread. */
  loadIndex(read?: ReadFile): Promise<LoadedIndex>;
  /** Reads some parts of the index, which takes less time. */
  loadParts<P extends IndexPart>(parts: readonly P[]): Promise<PartOfIndex<P>>;
  /** Returns the path of the crop index, or null. The file may be missing. */
  findCropIndex(): Promise<string | null>;
  /** Reads the inspection of the shard. Absent if shards of this kind have none. */
  readonly loadInspection?: LoadInspection | undefined;
}

/** Returns the bytes of the samples of a shard, without those that an overlay, a split or a list of keys hides. */
export function sampleBytesOf({ sampleBytes, bytes }: ShardFile): number {
  return sampleBytes ?? bytes;
}
