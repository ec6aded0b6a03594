import { crc32, ShardtoolError, toMessage } from '@shardtool/base';
import { type FieldColumns, headerOf, type PartOfIndex } from '@shardtool/format';
import { type AnnotationOptions, type Dataset, imageOf, type Sample } from '@shardtool/reader';
import { drawn, objectsOf } from './objects.js';
import { exifLines } from './pictures/exif.js';
import { isReadBySharp, masksOf } from './pictures/pictures.js';
import type { DrawnObject, FieldDetail, Mark, SampleDetail } from './protocol.js';

/** Maximum number of characters of a text, and of columns, that are shown. */
const TEXT_CHARACTERS = 4000;
const MOST_COLUMNS = 200;

/** The parts of a dataset that are needed to show one of its samples. */
export interface DetailedDataset extends Pick<Dataset, 'shards' | 'classes' | 'size'> {
  get(index: number, options: { readonly checksum: boolean }): Promise<Sample>;
  readonly files: {
    readonly firstSample: Float64Array;
    index(shard: number): Promise<PartOfIndex<'offset' | 'bytes' | 'fields' | 'width' | 'height' | 'orientation'>>;
  };
}

/** Throws SampleNotFoundError if there is no such sample, ShardLengthError, SampleChecksumError or FileError. */
export async function detailOf(
  dataset: DetailedDataset,
  index: number,
  {
    annotations,
    mark,
    className,
  }: { annotations: AnnotationOptions | undefined; mark: Mark | null; className: string | null },
): Promise<SampleDetail> {
  const sample = await dataset.get(index, { checksum: false });
  const shard = dataset.files.firstSample.findLastIndex((first) => first <= index && first < dataset.size);
  const row = index - dataset.files.firstSample[shard]!;
  const shardIndex = await dataset.files.index(shard);
  const faults: string[] = [];
  const { orientation, ...size } = shapeOf(shardIndex, row, sample);
  const inspected = await inspectedOf(dataset, shard, row).catch((error: Error) =>
    note(faults, 'its inspection', error, []),
  );
  const fields = Object.entries(sample.fields).map(([name, bytes]) =>
    fieldDetail(name, bytes, shardIndex.fields.get(name)!, row),
  );
  for (const { name, isRight } of fields) {
    if (isRight === false) faults.push(`The field "${name}" has changed since it was packed: its crc32 differs.`);
  }
  const exif = await exifOf(sample).catch((error: Error) => note(faults, 'EXIF', error, []));
  return {
    index,
    key: sample.key,
    cls: className,
    source: sample.source,
    shard: sample.shard,
    offset: shardIndex.offset[row]!,
    bytes: shardIndex.bytes[row]!,
    ...size,
    orientation,
    fields,
    columns: [...Object.entries(sample.columns), ...inspected].slice(0, MOST_COLUMNS).map(plain),
    exif,
    masks: masksOf(sample),
    objects: drawnObjects(sample, size, annotations, dataset.classes, faults),
    faults,
    mark,
  };
}

/** Size as the index has it. If the image was never measured, the size in the header of the image. */
function shapeOf(
  { width, height, orientation }: PartOfIndex<'width' | 'height' | 'orientation'>,
  row: number,
  { fields }: Sample,
) {
  const known = { width: width[row]!, height: height[row]!, orientation: orientation[row]! };
  const image = known.width > 0 ? null : imageOf({ fields });
  if (image === null) return known;
  const header = headerOf(image.bytes);
  return header === null ? known : { width: header.width, height: header.height, orientation: header.orientation };
}

function note<T>(faults: string[], what: string, error: Error, instead: T): T {
  faults.push(toMessage(`${what} cannot be read: ${error.message}`));
  return instead;
}

function fieldDetail(name: string, bytes: Uint8Array, column: FieldColumns, row: number): FieldDetail {
  const expected = column.crc32?.[row];
  return {
    name,
    bytes: bytes.length,
    offset: column.offset[row]!,
    crc32: expected === undefined ? null : expected.toString(16).padStart(8, '0'),
    isRight: expected === undefined ? null : crc32(bytes) === expected,
    text: textOf(bytes),
  };
}

/** Returns the beginning of bytes that are text, and null for other bytes. */
function textOf(bytes: Uint8Array): string | null {
  const head = bytes.subarray(0, 4 * TEXT_CHARACTERS);
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    if (text.includes('\0')) return null;
    return text.length > TEXT_CHARACTERS || head.length < bytes.length ? `${text.slice(0, TEXT_CHARACTERS)} …` : text;
  } catch {
    return null;
  }
}

async function exifOf(sample: Sample): Promise<SampleDetail['exif']> {
  const image = imageOf(sample);
  return image !== null && isReadBySharp(image.bytes) ? exifLines(image.bytes) : [];
}

/** Returns the values that `shardtool inspect` measured of a sample. */
async function inspectedOf(
  dataset: Pick<Dataset, 'shards'>,
  shard: number,
  row: number,
): Promise<(readonly [string, unknown])[]> {
  const found = (await dataset.shards[shard]!.loadInspection?.()) ?? null;
  return Array.from(found?.columns ?? [], ([name, { values }]) => [name, values[row] ?? null] as const);
}

function plain([name, value]: readonly [string, unknown]): SampleDetail['columns'][number] {
  // JSON has no infinite numbers.
  const isPlain = value === null || Number.isFinite(value) || typeof value === 'boolean';
  return [name, isPlain ? (value as number | boolean | null) : String(value).slice(0, TEXT_CHARACTERS)];
}

function drawnObjects(
  sample: Sample,
  size: { readonly width: number; readonly height: number },
  annotations: AnnotationOptions | undefined,
  classes: readonly string[],
  faults: string[],
): readonly DrawnObject[] {
  try {
    const found = objectsOf(sample, annotations);
    return found === null ? [] : drawn(found, size, classes);
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    return note(faults, 'what lies on it', error, []);
  }
}
