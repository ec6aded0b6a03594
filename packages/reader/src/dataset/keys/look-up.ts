import { lastAtMost, Recent } from '@shardtool/base';
import { type PartOfIndex, sampleTooLarge } from '@shardtool/format';
import { fetchAgain, type Sample, sampleAt } from '../samples.js';
import type { ShardFiles } from '../shards/shard-files.js';

/** Parts of an index that locate a sample, without its strings. */
const PLACES = ['offset', 'bytes', 'fields', 'cls'] as const;
/**
 * Number of samples whose offsets stay in memory, at some 60 bytes each. Reading the offsets takes longer than reading
 * a sample.
 */
const KEPT_PLACES = 2_000_000;
/** Number of shards whose keys and label columns stay in memory. */
const KEPT_KEYS = 64;

/** Reads single samples, anywhere in a dataset. */
export class LookUp {
  readonly #files: ShardFiles;
  readonly #places: Recent<number, PartOfIndex<(typeof PLACES)[number]>>;
  readonly #keys: Recent<number, PartOfIndex<'key'>>;
  readonly #columns: Recent<number, PartOfIndex<'columns' | 'source'>>;

  constructor(files: ShardFiles) {
    const shards = files.files;
    const meanSamples = Math.max(1, files.firstSample[shards.length]! / shards.length);
    this.#files = files;
    this.#places = new Recent(Math.ceil(KEPT_PLACES / meanSamples), (shard) => shards[shard]!.loadParts(PLACES));
    this.#keys = new Recent(KEPT_KEYS, (shard) => shards[shard]!.loadParts(['key']));
    this.#columns = new Recent(KEPT_KEYS, (shard) => shards[shard]!.loadParts(['columns', 'source']));
  }

  /** Reads the sample with this index, which must exist. `key` is its key, if that is known. */
  async sample(index: number, key: string | undefined, checksum: boolean): Promise<Sample> {
    this.#files.throwIfClosed();
    const shard = lastAtMost(this.#files.firstSample, index);
    const row = index - this.#files.firstSample[shard]!;
    const places = await this.#places.get(shard);
    const offset = places.offset[row]!;
    const bytes = places.bytes[row]!;
    const most = this.#files.mostBytes(shard);
    const shardName = this.#files.files[shard]!.name;
    if (bytes > most) {
      throw sampleTooLarge(shardName, key ?? (await this.#keys.get(shard)).key[row]!, bytes, most);
    }
    const buffer = new Uint8Array(bytes);
    const [{ columns, source }, keys] = await Promise.all([
      this.#columns.get(shard),
      key === undefined ? this.#keys.get(shard) : null,
      this.#files.read(shard, offset, buffer),
    ]);
    const name = { shard: shardName, key: key ?? keys!.key[row]!, index };
    const read = () => sampleAt(name, { ...places, columns, source }, row, { buffer, offset }, checksum);
    try {
      return read();
    } catch (error) {
      await fetchAgain(error, this.#files, shard, offset, buffer);
      return read();
    }
  }
}
