import {
  abortable,
  CALL_OPTIONS,
  checkCallOptions,
  checkFieldCrc32,
  DamagedShardError,
  type OptionTable,
  SampleChecksumError,
} from '@shardtool/base';
import { type ColumnValue, nameTable, type ShardIndex } from '@shardtool/format';
import { consecutive } from './consecutive.js';
import { fieldBytes } from './fields/field-bytes.js';
import type { ShardFiles } from './shards/shard-files.js';

/** One sample as it is stored. `fields` has the bytes of its fields by name (`jpg`, `cls`), not decoded. */
export interface Sample {
  /** Index in the dataset. */
  readonly index: number;
  readonly shard: string;
  readonly key: string;
  /** Class number; -1 if the sample has no class. */
  readonly label: number;
  /** Stored bytes of each field, by name. {@link imageOf} returns the image. */
  readonly fields: Readonly<Record<string, Uint8Array<ArrayBuffer>>>;
  /** Values of the columns that came with the labels, by name; null if the sample has none. */
  readonly columns: Readonly<Record<string, ColumnValue>>;
  /** The file that the image was packed from, relative to the packed folder. Empty if the index does not have it. */
  readonly source: string;
}

export interface SamplesOptions {
  /** Index of the first sample. Default: 0. */
  readonly from?: number | undefined;
  /** Index after the last sample. Default: all samples. */
  readonly to?: number | undefined;
  /** Whether the crc32 of every field is checked. Throws if one is wrong. Default: false. */
  readonly checksum?: boolean | undefined;
  /**
   * Default: false. The bytes of a sample are copied, and yours to keep. If true, nothing is copied, and the bytes are
   * overwritten when the next sample is requested.
   */
  readonly reuse?: boolean | undefined;
  /** Ends the loop with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const OPTIONS = {
  from: { kind: 'whole', from: 0, default: 0, help: 'Index of the first sample' },
  to: { kind: 'whole', from: 0, help: 'Index after the last sample' },
  checksum: { kind: 'switch', default: false, help: 'Whether checksums are checked' },
  reuse: { kind: 'switch', default: false, help: 'Whether bytes are overwritten' },
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/** Throws OptionError for an unknown name, or a value that is not allowed. */
export function checkSamplesOptions(options: SamplesOptions): SamplesOptions {
  return checkCallOptions('samples', OPTIONS, options) as SamplesOptions;
}

/** Number of bytes per read: small enough to stay in the processor's cache until they are used. */
const WINDOW_BYTES = 2 ** 20;
/** Number of windows that are read ahead, including the one in use. */
const WINDOWS = 3;

/** Rows whose bytes are contiguous in a shard. */
interface Window {
  readonly shard: number;
  readonly index: ShardIndex;
  readonly from: number;
  readonly to: number;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Yields samples in the order of the dataset, reading each shard from start to end. Throws {@link SampleChecksumError}
 * with shard and key.
 */
export async function* readSamples(files: ShardFiles, options: SamplesOptions = {}): AsyncGenerator<Sample> {
  const { from = 0, to = files.firstSample.at(-1)!, checksum = false, reuse = false, signal } = options;
  const buffers: Uint8Array<ArrayBuffer>[] = [];
  const ahead: { window: Window; buffer: Uint8Array<ArrayBuffer>; ready: Promise<void> }[] = [];
  const windows = planWindows(files, from, to);
  const readNext = async (): Promise<void> => {
    const next = await windows.next();
    if (next.done) return;
    const window = next.value;
    files.checkSizes(window.shard, window.index, consecutive(window.from, window.to - window.from));
    let buffer = buffers.pop();
    // A single sample gets a buffer of its size: clearing a larger buffer would take longer than reading the sample.
    const room = to - from === 1 ? window.bytes : Math.max(WINDOW_BYTES, window.bytes);
    if (buffer === undefined || buffer.length < window.bytes) buffer = new Uint8Array(room);
    const ready = files.read(window.shard, window.offset, buffer.subarray(0, window.bytes));
    // The error is thrown when the window is used. Until then it must not count as an unhandled rejection.
    ready.catch(() => {});
    ahead.push({ window, buffer, ready });
  };
  try {
    while (ahead.length < WINDOWS) {
      const before = ahead.length;
      await readNext();
      if (ahead.length === before) break;
    }
    for (let turn = ahead.shift(); turn !== undefined; turn = ahead.shift()) {
      const { window, buffer, ready } = turn;
      await abortable(signal, () => ready);
      for (let row = window.from; row < window.to; row++) {
        let sample: Sample;
        try {
          sample = sampleOf(files, window, row, buffer, checksum);
        } catch (error) {
          const at = window.index.offset[row]!;
          const span = buffer.subarray(at - window.offset, at - window.offset + window.index.bytes[row]!);
          await fetchAgain(error, files, window.shard, at, span);
          sample = sampleOf(files, window, row, buffer, checksum);
        }
        signal?.throwIfAborted();
        yield reuse ? sample : { ...sample, fields: copied(sample.fields) };
      }
      buffers.push(turn.buffer);
      await readNext();
    }
  } finally {
    // After an abort, reads may hang.
    if (signal?.aborted !== true) await Promise.allSettled(ahead.map(({ ready }) => ready));
  }
}

function copied(fields: Sample['fields']): Sample['fields'] {
  return nameTable(Object.entries(fields).map(([name, bytes]) => [name, new Uint8Array(bytes)]));
}

async function* planWindows(files: ShardFiles, first: number, end: number): AsyncGenerator<Window> {
  for (let shard = 0; shard < files.files.length; shard++) {
    const base = files.firstSample[shard]!;
    const from = Math.max(0, first - base);
    const to = Math.min(files.files[shard]!.samples, end - base);
    if (from >= to) continue;
    const index = await files.wholeIndex(shard);
    yield* shardWindows(shard, index, from, to);
  }
}

/** Cuts rows `from` to `to - 1` into windows: rows that follow each other in the file, up to {@link WINDOW_BYTES}. */
function* shardWindows(shard: number, index: ShardIndex, from: number, to: number): Generator<Window> {
  let row = from;
  while (row < to) {
    const offset = index.offset[row]!;
    let end = offset + index.bytes[row]!;
    let next = row + 1;
    while (next < to && index.offset[next]! >= offset) {
      const nextEnd = index.offset[next]! + index.bytes[next]!;
      if (nextEnd - offset > WINDOW_BYTES) break;
      end = Math.max(end, nextEnd);
      next++;
    }
    yield { shard, index, from: row, to: next, offset, bytes: end - offset };
    row = next;
  }
}

/** Returns the sample of a row of a window. */
function sampleOf(
  files: ShardFiles,
  window: Window,
  row: number,
  buffer: Uint8Array<ArrayBuffer>,
  checksum: boolean,
): Sample {
  const { index, offset } = window;
  const shard = files.files[window.shard]!.name;
  const name = { shard, key: index.key[row]!, index: files.firstSample[window.shard]! + row };
  return sampleAt(name, index, row, { buffer, offset }, checksum);
}

/** Reads a sample again that was changed in transit from remote storage. Throws `error` if that is not possible. */
export async function fetchAgain(
  error: unknown,
  files: ShardFiles,
  shard: number,
  offset: number,
  target: Uint8Array,
): Promise<void> {
  const isChanged = error instanceof SampleChecksumError || error instanceof DamagedShardError;
  if (!isChanged || !files.store.bytes.mayDiffer) throw error;
  await files.read(shard, offset, target);
}

/** Returns the sample of a row of an index. `buffer` contains its bytes and begins at byte `offset` of the shard. */
export function sampleAt(
  { shard, key, index }: Pick<Sample, 'shard' | 'key' | 'index'>,
  shardIndex: Pick<ShardIndex, 'fields' | 'cls' | 'columns' | 'source'>,
  row: number,
  { buffer, offset }: { readonly buffer: Uint8Array<ArrayBuffer>; readonly offset: number },
  checksum: boolean,
): Sample {
  const fields = nameTable<Uint8Array<ArrayBuffer>>();
  for (const [name, column] of shardIndex.fields) {
    const at = column.offset[row]!;
    if (at < 0) continue;
    const stored = buffer.subarray(at - offset, at - offset + column.bytes[row]!);
    const bytes = fieldBytes(stored, column, row, { shard, key, field: name });
    const expected = column.crc32?.[row];
    if (checksum && expected !== undefined) checkFieldCrc32({ shard, key, field: name, bytes, expected });
    fields[name] = bytes;
  }
  const columns = nameTable<ColumnValue>();
  for (const [name, values] of shardIndex.columns) columns[name] = values[row] ?? null;
  return { index, shard, key, label: shardIndex.cls[row]!, fields, columns, source: shardIndex.source[row] ?? '' };
}
