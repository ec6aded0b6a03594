import { type ColumnValue, jsonText } from '@shardtool/format';
import type { FileTable } from '../source/file-table.js';
import type { Labels } from '../source/labels/labels.js';
import { hasObjects, type ImageSize } from '../source/labels/objects.js';
import type { SourceFiles } from '../source/source-files.js';
import type { PackPlan } from './plan-shards.js';
import { type Provenance, provenanceColumns } from './provenance.js';

/** Contents of one shard to be written: everything a worker needs to write it. */
export interface ShardPlan {
  readonly samples: number;
  /** Sample s has the files `fileStart[s]` to `fileStart[s + 1] - 1` of the table, its image first. */
  readonly fileStart: Uint32Array;
  readonly files: FileTable;
  /** Class number of each sample; -1 if it has none. */
  readonly cls: Int32Array;
  /** Label columns, one value per sample. */
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
  /** Fields that are made from the labels, by name: the text of each sample. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  /** Image width and height that the annotations of each sample refer to, if the annotations state them. */
  readonly sizes?: readonly ImageSize[] | undefined;
}

/** Contents of a labels file for the files of a table. */
export interface FileLabels {
  readonly table: Labels;
  /** Row of each file; -1 if the labels have none. */
  readonly rowOfFile: Int32Array;
  /** Files of the source that the labels were read from. */
  readonly own?: ReadonlySet<number> | undefined;
}

/** Returns the part of the plan for shard `shard`. */
export function shardPlanOf(
  files: SourceFiles,
  plan: PackPlan,
  labels: FileLabels | null,
  provenance: Provenance | null,
  shard: number,
): ShardPlan {
  const { grouping } = plan;
  const samples = plan.order.subarray(plan.shardStart[shard]!, plan.shardStart[shard + 1]!);
  const fileStart = new Uint32Array(samples.length + 1);
  const cls = new Int32Array(samples.length);
  for (let i = 0; i < samples.length; i++) {
    const sample = samples[i]!;
    cls[i] = plan.cls[sample]!;
    fileStart[i + 1] = fileStart[i]! + grouping.fileStart[sample + 1]! - grouping.fileStart[sample]!;
  }
  const members = new Uint32Array(fileStart[samples.length]!);
  for (let i = 0; i < samples.length; i++) {
    let member = grouping.fileStart[samples[i]!]!;
    for (let to = fileStart[i]!; to < fileStart[i + 1]!; to++) members[to] = grouping.files[member++]!;
  }
  const row = (image: number) => labels!.rowOfFile[members[image]!]!;
  const images = fileStart.subarray(0, samples.length);
  const sizes = labels !== null && hasObjects(labels.table) ? labels.table.sizes : undefined;
  const taken = <Value>(lists: ReadonlyMap<string, readonly Value[]> | undefined): Map<string, Value[]> =>
    new Map([...(lists ?? [])].map(([name, values]) => [name, Array.from(images, (image) => values[row(image)]!)]));
  const table = takeFiles(files, members);
  const origin = provenance === null ? [] : provenanceColumns(provenance, table, images);
  return {
    samples: samples.length,
    fileStart,
    files: table,
    cls,
    columns: new Map<string, readonly ColumnValue[]>([...taken(labels?.table.columns), ...origin]),
    texts: taken(labels?.table.texts),
    ...(sizes && { sizes: Array.from(images, (image) => sizes[row(image)]!) }),
  };
}

/** Returns a table of these files, in this order. */
export function takeFiles(files: SourceFiles, chosen: Uint32Array): FileTable {
  const count = chosen.length;
  const reader = files.reader();
  const bytes = new Float64Array(count);
  const mtimeMs = new Float64Array(count);
  const ends = new Float64Array(count);
  let text = Buffer.allocUnsafe(count * USUAL_PATH_BYTES);
  let textBytes = 0;
  for (let i = 0; i < count; i++) {
    const file = chosen[i]!;
    const end = textBytes + reader.pathBytes(file);
    if (end > text.length) text = Buffer.concat([text], 2 * end);
    reader.copyPath(file, text, textBytes);
    textBytes = end;
    ends[i] = end;
    bytes[i] = reader.bytes(file);
    mtimeMs[i] = reader.mtimeMs(file);
  }
  return { count, text: text.subarray(0, textBytes), ends, bytes, mtimeMs };
}

const USUAL_PATH_BYTES = 64;

/**
 * Size of the head: four 32-bit numbers, for samples, files, bytes of the paths, and bytes of the label columns as
 * JSON.
 */
const HEAD_BYTES = 16;

/** Offsets of the sections in bytes. The sizes of the files follow the head. */
function placesOf(samples: number, files: number, textBytes: number, columnsBytes: number) {
  const fileStart = HEAD_BYTES + files * 8;
  const cls = fileStart + (samples + 1) * 4;
  const ends = cls + samples * 4;
  const text = ends + files * 4;
  const columns = text + textBytes;
  const times = Math.ceil((columns + columnsBytes) / 8) * 8;
  return { sizes: HEAD_BYTES, fileStart, cls, ends, text, columns, times, end: times + files * 8 };
}

/** Encodes a plan. Equal plans give equal bytes. Numbers are little-endian, as on every machine that runs Node. */
export function encodeShardPlan(plan: ShardPlan): Uint8Array<ArrayBuffer> {
  const { samples, fileStart, files, cls } = plan;
  const json = Buffer.from(encodeLabels(plan));
  const at = placesOf(samples, files.count, files.text.length, json.length);
  const block = new Uint8Array(at.end);
  new Uint32Array(block.buffer, 0, 4).set([samples, files.count, files.text.length, json.length]);
  new Float64Array(block.buffer, at.sizes, files.count).set(files.bytes);
  new Uint32Array(block.buffer, at.fileStart, samples + 1).set(fileStart);
  new Int32Array(block.buffer, at.cls, samples).set(cls);
  new Uint32Array(block.buffer, at.ends, files.count).set(files.ends);
  block.set(files.text, at.text);
  block.set(json, at.columns);
  new Float64Array(block.buffer, at.times, files.count).set(files.mtimeMs);
  return block;
}

/** Without texts, columns are encoded as in earlier versions. */
function encodeLabels({ columns, texts, sizes }: Pick<ShardPlan, 'columns' | 'texts' | 'sizes'>): string {
  if (texts.size > 0) return jsonText({ columns: [...columns], texts: [...texts], sizes });
  return columns.size === 0 ? '' : jsonText([...columns]);
}

function decodeLabels(json: string): Pick<ShardPlan, 'columns' | 'texts' | 'sizes'> {
  const labels = (json === '' ? [] : JSON.parse(json)) as
    | Columns
    | { readonly columns: Columns; readonly texts: Texts; readonly sizes?: readonly ImageSize[] };
  if ('texts' in labels) return { ...labels, columns: new Map(labels.columns), texts: new Map(labels.texts) };
  return { columns: new Map(labels), texts: new Map() };
}

type Columns = readonly (readonly [string, readonly ColumnValue[]])[];
type Texts = readonly (readonly [string, readonly string[]])[];

/** The inverse of {@link encodeShardPlan}, without copying: `block` must own its ArrayBuffer. */
export function decodeShardPlan({ buffer }: Uint8Array<ArrayBuffer>): ShardPlan {
  const [samples, count, textBytes, columnsBytes] = new Uint32Array(buffer, 0, 4) as unknown as number[];
  const at = placesOf(samples!, count!, textBytes!, columnsBytes!);
  const json = Buffer.from(buffer, at.columns, columnsBytes!).toString();
  return {
    samples: samples!,
    fileStart: new Uint32Array(buffer, at.fileStart, samples! + 1),
    cls: new Int32Array(buffer, at.cls, samples!),
    files: {
      count: count!,
      text: Buffer.from(buffer, at.text, textBytes!),
      ends: Float64Array.from(new Uint32Array(buffer, at.ends, count!)),
      bytes: new Float64Array(buffer, at.sizes, count!),
      mtimeMs: new Float64Array(buffer, at.times, count!),
    },
    ...decodeLabels(json),
  };
}
