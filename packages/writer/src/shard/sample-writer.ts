import {
  crc32,
  type FieldSize,
  fieldOfKind,
  type ImageHeader,
  isImageField,
  kindOfField,
  packedName,
  probeImage,
  type ShardWriter,
} from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import { BadFile, readSourceFile } from '../source/source-file.js';
import type { ImageStep } from './image-step.js';
import type { SampleRow } from './shard-rows.js';

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
  /** The layout stores the image alone: the class number stands in the index only. */
  readonly imageOnly: boolean;
  readonly limits: ImageLimits;
}

/** How large an image may be, and how small. */
export interface ImageLimits {
  readonly maxPixels: number;
  /** Of the shorter side, in pixels. */
  readonly minSize: number;
}

/** What a sample became, and what was changed on the way. */
export interface WrittenSample {
  readonly row: SampleRow;
  /** The content is of another kind than the name says; the field is named by the content. */
  readonly renamed: boolean;
  readonly orientationBaked: boolean;
  /** Things in the image that were odd although it could be decoded. */
  readonly warnings: number;
  /** Metadata were to be taken out, and could not without encoding the image anew. */
  readonly metadataKept: boolean;
}

/** A field: a file that is read straight into the shard, or bytes at hand. */
interface Field extends FieldSize {
  /** Of the file, below the source; '' for the class number, which comes from none. */
  readonly path: string;
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
  const header = probe(payloads[image]!, fields[image]!.name, options.root + sample.files[0]!.path, options.limits);
  if (kindOfField(fields[image]!.name) === header.kind) {
    return commit(writer, key, sample, fields, payloads, header);
  }
  // Fields are sorted by name, so another name is another place: what was read is laid out again.
  const copies = fields.map((field, i) => ({ ...field, content: payloads[i]!.slice() }));
  const renamed = withImage(copies, key, fieldOfKind(header.kind), copies[image]!.content);
  writer.discard();
  return { ...commit(writer, key, sample, renamed, fill(writer, key, renamed), header), renamed: true };
}

/** Writes a sample after something was done to its image. Throws what {@link writeSample} throws. */
export async function writeSteppedSample(
  writer: ShardWriter,
  sample: PlannedSample,
  options: SampleOptions,
  step: ImageStep,
): Promise<WrittenSample> {
  const { path, bytes } = sample.files[0]!;
  const original = new Uint8Array(Math.max(0, bytes));
  readSourceFile(options.root + path, original);
  const named = packedName(path, options.fields)!.field;
  const before = probe(original, named, options.root + path, options.limits);
  const {
    bytes: replacement,
    fieldFor,
    size,
    warnings,
    metadataKept,
  } = await step(original, before, options.root + path);
  const { key, fields } = layOut(sample, options);
  const replaced = withImage(fields, key, fieldFor(named), replacement);
  return {
    ...commit(writer, key, sample, replaced, fill(writer, key, replaced), size),
    renamed: kindOfField(named) !== before.kind,
    orientationBaked: before.orientation !== size.orientation,
    warnings,
    metadataKept,
  };
}

/** Reads the image's header. A name of a kind that is not supported is refused whatever the content is. */
function probe(image: Uint8Array, field: string, path: string, { maxPixels, minSize }: ImageLimits): ImageHeader {
  const header = probeImage(image, path, maxPixels);
  if (Math.min(header.width, header.height) < minSize) {
    throw new BadFile(`${path} has ${header.width}x${header.height} pixels, and minSize asks for sides of ${minSize}.`);
  }
  if (isImageField(field)) return header;
  const right = fieldOfKind(header.kind);
  throw new BadFile(
    `${path} is named as an image that is not supported, but it is a ${header.kind}; rename it to .${right}.`,
  );
}

/** The key of a sample and its fields, sorted by name. */
function layOut(sample: PlannedSample, options: SampleOptions): { key: string; fields: Field[] } {
  const [image, ...sidecars] = sample.files;
  const { key, field } = packedName(image!.path, options.fields)!;
  const fieldOf = (name: string, { path, bytes }: { path: string; bytes: number }, isImage: boolean): Field => {
    // A file that could not be measured is met when it is read.
    return { name, bytes: Math.max(0, bytes), path, content: options.root + path, isImage };
  };
  const fields = [fieldOf(field, image!, true)];
  for (const file of sidecars) fields.push(fieldOf(packedName(file.path, options.fields)!.field, file, false));
  if (sample.cls !== -1 && !options.imageOnly) {
    const digits = Buffer.from(String(sample.cls));
    fields.push({ name: 'cls', bytes: digits.length, path: '', content: digits, isImage: false });
  }
  return { key, fields: sortByName(fields) };
}

function sortByName(fields: Field[]): Field[] {
  return fields.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The fields with another name and other bytes for the image. */
function withImage(fields: readonly Field[], key: string, name: string, content: string | Uint8Array): Field[] {
  const image = fields.find((field) => field.isImage)!;
  const twin = fields.find((field) => field !== image && field.name === name);
  if (twin !== undefined) {
    throw new KeyCollisionError(
      { key, paths: [image.path, twin.path] },
      `${image.path} is the field "${name}" by its content, and so is ${twin.path} by its name; rename or exclude one of them.`,
    );
  }
  return sortByName(
    fields.map((field) => (field === image ? { ...image, name, bytes: content.length, content } : field)),
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
  header: Omit<ImageHeader, 'kind'>,
): WrittenSample {
  const checksums = payloads.map((payload) => crc32(payload));
  const cls = sample.cls === -1 ? classOfField(fields, payloads) : sample.cls;
  writer.commit(checksums);
  const { width, height, orientation } = header;
  const row = { key, source: sample.files[0]!.path, fields, crc32: checksums, width, height, orientation, cls };
  return { row, renamed: false, orientationBaked: false, warnings: 0, metadataKept: false };
}

/** The number in a file `.cls` beside an image that has no class of its own; -1 where there is none. */
function classOfField(fields: readonly Field[], payloads: readonly Uint8Array[]): number {
  const field = fields.findIndex(({ name }) => name === 'cls');
  if (field === -1 || payloads[field]!.length > 10) return -1;
  const text = Buffer.from(payloads[field]!).toString('latin1').trim();
  return /^\d+$/.test(text) && Number(text) <= 0x7fffffff ? Number(text) : -1;
}
