import { lastAtMost, Recent } from '@shardtool/base';
import { imageFields, type PartOfIndex } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import type { ShardFiles } from './shards/shard-files.js';

const PARTS = ['bytes', 'fields', 'cls'] as const;
/** Number of samples whose offsets stay in memory, at some 60 bytes each. */
const KEPT_SAMPLES = 2_000_000;
/** Number of shards whose keys stay in memory. */
const KEPT_KEYS = 64;

/** Where the stored images of some samples are, with one entry per sample. */
export interface ImagePlaces {
  /** The files that have the images. */
  readonly paths: readonly string[];
  /** Index in {@link paths}. */
  readonly file: Int32Array;
  /** First byte in the file. */
  readonly offset: Float64Array;
  readonly bytes: Float64Array;
  /** crc32 of the bytes; -1 if the index has none. */
  readonly crc32: Float64Array;
  /** Class numbers; -1 where a sample has none. */
  readonly labels: Int32Array;
}

/** Finds stored images that another process can read by itself: plain bytes of a local file. */
export class ImageFinder {
  readonly #files: ShardFiles;
  readonly #image: string | false | undefined;
  readonly #parts: Recent<number, PartOfIndex<(typeof PARTS)[number]>>;
  readonly #keys: Recent<number, PartOfIndex<'key'>>;

  /** `image`: field of the images, or false if there are none. Default: the first image field of each sample. */
  constructor(files: ShardFiles, image?: string | false | undefined) {
    const meanSamples = Math.max(1, files.firstSample.at(-1)! / files.files.length);
    this.#files = files;
    this.#image = image;
    this.#parts = new Recent(Math.ceil(KEPT_SAMPLES / meanSamples), (shard) => files.files[shard]!.loadParts(PARTS));
    this.#keys = new Recent(KEPT_KEYS, (shard) => files.files[shard]!.loadParts(['key']));
  }

  /** Returns the keys of samples, which must exist, by index. */
  async keys(indices: readonly number[]): Promise<string[]> {
    const { firstSample } = this.#files;
    const keys: string[] = [];
    for (const index of indices) {
      const shard = lastAtMost(firstSample, index);
      keys.push((await this.#keys.get(shard)).key[index - firstSample[shard]!]!);
    }
    return keys;
  }

  /**
   * Returns the places of the images of samples, by index. Returns null if one of them has to be read by
   * {@link StoredDataset.get}, which also reports what is wrong with a sample: the file is remote or compressed, its storage is slow, or the
   * sample does not exist, has no image, or is larger than allowed.
   */
  async find(indices: readonly number[]): Promise<ImagePlaces | null> {
    this.#files.throwIfClosed();
    const { firstSample, files, isSlow } = this.#files;
    // The reader reads many images at a time, another process one after the other.
    if (isSlow) return null;
    const found = {
      file: new Int32Array(indices.length),
      offset: new Float64Array(indices.length),
      bytes: new Float64Array(indices.length),
      crc32: new Float64Array(indices.length),
      labels: new Int32Array(indices.length),
    };
    const paths = new Map<string, number>();
    for (const [i, index] of indices.entries()) {
      if (!(index >= 0 && index < firstSample.at(-1)!)) return null;
      const shard = lastAtMost(firstSample, index);
      const { path, open } = files[shard]!;
      if (open !== undefined || isRemote(path)) return null;
      const parts = await this.#parts.get(shard);
      const row = index - firstSample[shard]!;
      if (parts.bytes[row]! > this.#files.mostBytes(shard)) return null;
      const column = this.#column(parts, row);
      if (column === undefined || column.offset[row]! < 0 || column.msgpack?.[row] === 1) return null;
      if (!paths.has(path)) paths.set(path, paths.size);
      found.file[i] = paths.get(path)!;
      found.offset[i] = column.offset[row]!;
      found.bytes[i] = column.bytes[row]!;
      found.crc32[i] = column.crc32?.[row] ?? -1;
      found.labels[i] = parts.cls[row]!;
    }
    return { paths: [...paths.keys()], ...found };
  }

  #column({ fields }: Pick<PartOfIndex<'fields'>, 'fields'>, row: number) {
    if (this.#image === false) return undefined;
    if (this.#image !== undefined) return fields.get(this.#image);
    const names = [...fields].flatMap(([name, { offset }]) => (offset[row]! >= 0 ? [name] : []));
    const [first] = imageFields(names);
    return first === undefined ? undefined : fields.get(first);
  }
}
