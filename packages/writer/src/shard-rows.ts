import type { FieldColumns, FieldSize, FinishedShard, ShardIndex } from '@shardtool/format';

/** One sample as it was written. */
export interface SampleRow {
  readonly key: string;
  /** Path of the image below the packed folder. */
  readonly source: string;
  /** In the order in which they were laid out. */
  readonly fields: readonly FieldSize[];
  readonly crc32: readonly number[];
  readonly width: number;
  readonly height: number;
  readonly orientation: number;
  readonly cls: number;
}

/** Gathers the rows of a shard's index, of `capacity` samples at most, while the samples are written. */
export class ShardRows {
  readonly #capacity: number;
  readonly #key: string[] = [];
  readonly #source: string[] = [];
  readonly #width: Int32Array;
  readonly #height: Int32Array;
  readonly #orientation: Uint8Array;
  readonly #cls: Int32Array;
  /** `offset` has the payload's number in the shard until the shard is finished; -1 where a sample lacks the field. */
  readonly #fields = new Map<string, FieldColumns>();
  #payloads = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#width = new Int32Array(capacity);
    this.#height = new Int32Array(capacity);
    this.#orientation = new Uint8Array(capacity);
    this.#cls = new Int32Array(capacity);
  }

  get samples(): number {
    return this.#key.length;
  }

  add(sample: SampleRow): void {
    const row = this.samples;
    this.#key.push(sample.key);
    this.#source.push(sample.source);
    this.#width[row] = sample.width;
    this.#height[row] = sample.height;
    this.#orientation[row] = sample.orientation;
    this.#cls[row] = sample.cls;
    for (let i = 0; i < sample.fields.length; i++) {
      const columns = this.#columnsOf(sample.fields[i]!.name);
      columns.offset[row] = this.#payloads++;
      columns.bytes[row] = sample.fields[i]!.bytes;
      columns.crc32[row] = sample.crc32[i]!;
    }
  }

  /** The index of the finished shard, the columns of its fields sorted by name; without label columns. */
  toIndex(finished: FinishedShard): ShardIndex {
    const rows = this.samples;
    const names = [...this.#fields.keys()].sort();
    const fields = new Map(names.map((name) => [name, placeField(this.#fields.get(name)!, rows, finished)]));
    return {
      samples: rows,
      key: this.#key,
      source: this.#source,
      offset: finished.sampleOffset,
      bytes: finished.sampleBytes,
      fields,
      width: this.#width.subarray(0, rows),
      height: this.#height.subarray(0, rows),
      orientation: this.#orientation.subarray(0, rows),
      cls: this.#cls.subarray(0, rows),
      columns: new Map(),
    };
  }

  #columnsOf(field: string): FieldColumns {
    let columns = this.#fields.get(field);
    if (columns === undefined) {
      const capacity = this.#capacity;
      columns = {
        offset: new Float64Array(capacity).fill(-1),
        bytes: new Float64Array(capacity),
        crc32: new Uint32Array(capacity),
      };
      this.#fields.set(field, columns);
    }
    return columns;
  }
}

/** The columns of a field with the places that its payloads got in the finished shard. */
function placeField(columns: FieldColumns, rows: number, finished: FinishedShard): FieldColumns {
  const { payloadOffset, payloadBytes, payloadMsgpack } = finished;
  const payload = columns.offset.subarray(0, rows);
  const bytes = columns.bytes.subarray(0, rows);
  const msgpack = Uint8Array.from(payload, (number) => payloadMsgpack?.[number] ?? 0);
  return {
    offset: payload.map((number) => payloadOffset[number] ?? -1),
    bytes: payloadBytes === undefined ? bytes : payload.map((number) => payloadBytes[number] ?? 0),
    crc32: columns.crc32.subarray(0, rows),
    ...(msgpack.includes(1) ? { msgpack } : {}),
  };
}
