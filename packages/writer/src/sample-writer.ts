import {
  crc32,
  type FieldSize,
  fieldOfKind,
  type ImageHeader,
  type ImageKind,
  kindOfField,
  packedName,
  probeImage,
  type ShardWriter,
} from '@shardtool/format';
import { KeyCollisionError } from './errors.js';
import type { RecodedImage, Recoder } from './recode.js';
import type { SampleRow } from './shard-rows.js';
import { BadFile, readSourceFile } from './source-file.js';

/** One sample of the plan. */
export interface PlannedSample {
  /** Paths below the source and sizes; the image first. */
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
  /** Class number; -1 for none. */
  readonly cls: number;
}

export interface SampleOptions {
  /** The source folder, with a "/" at its end. */
  readonly root: string;
  /** Endings of more than one part, or of images that belong to others. */
  readonly fields: readonly string[];
}

/** What a sample became, and what was changed on the way. */
export interface WrittenSample {
  readonly row: SampleRow;
  /** The content is of another kind than the name says; the field is named by the content. */
  readonly renamed: boolean;
  readonly orientationBaked: boolean;
}

/** A field: a file that is read straight into the shard, or bytes at hand. */
interface Field extends FieldSize {
  readonly content: string | Uint8Array;
  readonly isImage: boolean;
}

/**
 * Writes a sample, its bytes as they are. Throws {@link BadFile} or {@link ImageError} where a file cannot be packed;
 * nothing of the sample is in the shard then.
 */
export function writeSample(writer: ShardWriter, sample: PlannedSample, options: SampleOptions): WrittenSample {
  const { key, fields } = layOut(sample, options);
  const payloads = fill(writer, key, fields);
  const image = fields.findIndex((field) => field.isImage);
  const header = probeImage(payloads[image]!, options.root + sample.files[0]!.path);
  if (kindOfField(fields[image]!.name) === header.kind) {
    return commit(writer, key, sample, fields, payloads, header);
  }
  // Fields are sorted by name, so another name is another place: what was read is laid out again.
  const copies = fields.map((field, i) => ({ ...field, content: payloads[i]!.slice() }));
  const renamed = withImage(copies, key, sample, fieldOfKind(header.kind), copies[image]!.content);
  writer.discard();
  return { ...commit(writer, key, sample, renamed, fill(writer, key, renamed), header), renamed: true };
}

/** Writes a sample, its image encoded anew. Throws what {@link writeSample} throws. */
export async function writeRecodedSample(
  writer: ShardWriter,
  sample: PlannedSample,
  options: SampleOptions,
  recode: Recoder,
): Promise<WrittenSample> {
  const { path, bytes } = sample.files[0]!;
  const original = new Uint8Array(Math.max(0, bytes));
  readSourceFile(options.root + path, original);
  const before = probeImage(original, options.root + path);
  const image = await recodeOrRefuse(recode, original, before.kind, options.root + path);
  const { key, fields } = layOut(sample, options);
  const named = fields.find((field) => field.isImage)!.name;
  const kind: ImageKind = image.format === 'jpg' ? 'jpeg' : image.format;
  const name = kindOfField(named) === kind ? named : fieldOfKind(kind);
  const replaced = withImage(fields, key, sample, name, image.bytes);
  const written = commit(writer, key, sample, replaced, fill(writer, key, replaced), { ...image, kind, orientation: 1 });
  return { ...written, renamed: kindOfField(named) !== before.kind, orientationBaked: before.orientation !== 1 };
}

async function recodeOrRefuse(recode: Recoder, image: Uint8Array, kind: ImageKind, path: string): Promise<RecodedImage> {
  try {
    return await recode(image, kind);
  } catch (cause) {
    throw new BadFile(`${path} cannot be decoded (${(cause as Error).message.trim()}).`, { cause });
  }
}

/** The key of a sample and its fields, sorted by name. */
function layOut(sample: PlannedSample, options: SampleOptions): { key: string; fields: Field[] } {
  const [image, ...sidecars] = sample.files;
  const { key, field } = packedName(image!.path, options.fields)!;
  const fields: Field[] = [{ name: field, bytes: sizeOf(image!), content: options.root + image!.path, isImage: true }];
  if (sample.cls !== -1) {
    const digits = Buffer.from(String(sample.cls));
    fields.push({ name: 'cls', bytes: digits.length, content: digits, isImage: false });
  }
  for (const file of sidecars) {
    const name = packedName(file.path, options.fields)!.field;
    fields.push({ name, bytes: sizeOf(file), content: options.root + file.path, isImage: false });
  }
  return { key, fields: sortByName(fields) };
}

/** A file that could not be measured is met when it is read. */
function sizeOf(file: { readonly bytes: number }): number {
  return Math.max(0, file.bytes);
}

function sortByName(fields: Field[]): Field[] {
  return fields.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The fields with other bytes and another name for the image. */
function withImage(
  fields: readonly Field[],
  key: string,
  sample: PlannedSample,
  name: string,
  content: string | Uint8Array,
): Field[] {
  const twin = fields.findIndex((field) => field.name === name && !field.isImage);
  if (twin !== -1) {
    const paths = [sample.files[0]!.path, `the file for field "${name}" beside it`];
    throw new KeyCollisionError(
      { key, paths },
      `${paths[0]} becomes the field "${name}" by its content, and so does ${paths[1]}; rename or exclude one of them.`,
    );
  }
  return sortByName(
    fields.map((field) => (field.isImage ? { name, bytes: content.length, content, isImage: true } : field)),
  );
}

/** Lays the sample out in the shard's buffer and puts every payload into its place. */
function fill(writer: ShardWriter, key: string, fields: readonly Field[]): readonly Uint8Array[] {
  const payloads = writer.begin(key, fields);
  for (let i = 0; i < fields.length; i++) {
    const { content } = fields[i]!;
    if (typeof content === 'string') readSourceFile(content, payloads[i]!);
    else payloads[i]!.set(content);
  }
  return payloads;
}

function commit(
  writer: ShardWriter,
  key: string,
  sample: PlannedSample,
  fields: readonly Field[],
  payloads: readonly Uint8Array[],
  header: ImageHeader,
): WrittenSample {
  const checksums = payloads.map((payload) => crc32(payload));
  const cls = sample.cls === -1 ? classOfField(fields, payloads) : sample.cls;
  writer.commit(checksums);
  const { width, height, orientation } = header;
  const row = { key, source: sample.files[0]!.path, fields, crc32: checksums, width, height, orientation, cls };
  return { row, renamed: false, orientationBaked: false };
}

/** The number in a file `.cls` beside an image that has no class of its own; -1 where there is none. */
function classOfField(fields: readonly Field[], payloads: readonly Uint8Array[]): number {
  const field = fields.findIndex(({ name }) => name === 'cls');
  if (field === -1 || payloads[field]!.length > 10) return -1;
  const text = Buffer.from(payloads[field]!).toString('latin1').trim();
  return /^\d+$/.test(text) && Number(text) <= 0x7fffffff ? Number(text) : -1;
}
