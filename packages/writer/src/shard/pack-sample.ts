import { createHash } from 'node:crypto';
import { crc32, NpyError, optionName, sentence } from '@shardtool/base';
import {
  fieldOfKind,
  headerOf,
  type ImageHeader,
  type IndexRows,
  imageFieldOf,
  isImageField,
  kindOfField,
  npyRowOf,
  probeImage,
} from '@shardtool/format';
import { KeyCollisionError } from '../errors.js';
import type { Naming } from '../plan/naming.js';
import type { ImageSize } from '../source/labels/objects.js';
import { BadFile, readSourceFile } from '../source/source-file.js';
import type { ImageStep } from './image-step.js';
import { filePieces, goesInPieces, HELD_BYTES, putLargeSample } from './large-sample.js';
import { type PrecisionCounts, precisionCounts } from './precision.js';
import {
  commitSample,
  fieldOf,
  layOutSample,
  type NewField,
  type PayloadOf,
  payloadNamed,
  putSample,
  type SampleFacts,
  type SampleWriter,
  withClass,
} from './put-sample.js';

/** One file of the plan. */
export interface PlannedFile {
  /** Path below the source. */
  readonly path: string;
  readonly bytes: number;
  /** If the file was read already: copies it to `place` and returns its crc32. Throws if it could not be read. */
  readonly put?: ((place: Uint8Array) => number) | undefined;
  /** The contents in pieces, if the file is too large to be read ahead. */
  readonly pieces?: (() => AsyncIterable<Uint8Array>) | undefined;
}

/** One sample of the plan. */
export interface PlannedSample {
  /** The image first. */
  readonly files: readonly PlannedFile[];
  /** Class number; -1 for none. */
  readonly cls: number;
  /** Names and texts of the fields that are made from the labels. */
  readonly texts: readonly (readonly [string, string])[];
  /** Image size that the annotations refer to; null if they do not state it. */
  readonly size: ImageSize;
}

export interface SampleOptions {
  /** Source folder, with a trailing "/". */
  readonly root: string;
  /** Rules by which paths become keys and fields. */
  readonly naming: Naming;
  /** True if the layout stores the image alone. The class number is then only in the index. */
  readonly imageOnly: boolean;
  readonly limits: ImageLimits;
  /** Whether to compute the sha256 of each image's file. */
  readonly isHashed?: boolean | undefined;
}

/** Limits on the size of images. */
export interface ImageLimits {
  readonly maxPixels: number;
  /** Minimum of the shorter side, in pixels. */
  readonly minSize: number;
}

/** How a sample was changed while it was packed. */
export interface PackedSample {
  /** True if the content is of another kind than the name says. The field is named after the content. */
  readonly renamed: boolean;
  readonly orientationBaked: boolean;
  /** Number of decoder warnings. */
  readonly warnings: number;
  /** True if metadata could not be removed without re-encoding the image. */
  readonly metadataKept: boolean;
  readonly precision: PrecisionCounts;
  /** sha256 of the image's file, in hexadecimal; null unless it is requested. */
  readonly sha256: string | null;
}

/** A field that is read from a file. */
class FileField implements NewField {
  readonly name: string;
  readonly bytes: number;
  /** Path below the source. */
  readonly path: string;
  readonly pieces: NewField['pieces'];
  readonly #root: string;
  readonly #put: PlannedFile['put'];

  constructor(name: string, { path, bytes, put, pieces }: PlannedFile, root: string) {
    this.name = name;
    // A file that could not be measured is detected when it is read.
    this.bytes = Math.max(0, bytes);
    this.path = path;
    this.pieces = bytes > HELD_BYTES ? (pieces ?? (() => filePieces(root + path, bytes))) : undefined;
    this.#root = root;
    this.#put = put;
  }

  put(place: Uint8Array): number {
    if (this.#put !== undefined) return this.#put(place);
    readSourceFile(this.#root + this.path, place);
    return crc32(place);
  }
}

/**
 * Writes a sample with unchanged bytes. Throws {@link BadFile} or {@link ImageError} if a file cannot be packed.
 * Nothing of the sample is in the shard then.
 */
export function packSample(
  writer: SampleWriter,
  rows: IndexRows,
  sample: PlannedSample,
  options: SampleOptions,
): PackedSample {
  const { root, limits, naming } = options;
  const { key, image, fields } = layOut(sample, options);
  if (naming.primary !== null) return packWithoutImage(writer, rows, { key, image, fields }, sample, options);
  const laidOut = layOutSample(writer, key, fields);
  try {
    const sha256 = options.isHashed === true ? sha256Of(payloadNamed(image.name, laidOut)!) : null;
    const header = probe(payloadNamed(image.name, laidOut)!, image.name, root + image.path, limits, sample.size);
    const payloadOf = (name: string | undefined) => payloadNamed(name, laidOut);
    const facts = factsOf(sample, header, payloadOf);
    const precision = precisionCounts({ name: image.name, header }, fields, payloadOf);
    if (kindOfField(image.name) === header.kind) {
      commitSample(writer, rows, key, laidOut, facts);
      return asItWas(false, precision, sha256);
    }
    const name = fieldOfKind(header.kind);
    refuseTwin(fields, key, image, name);
    // Fields are sorted by name, so another name means another position. The next layout overwrites this one, so each
    // payload is copied. `slice` would not copy, since the slice of a Buffer is a view.
    const renamed = laidOut.fields.map((field, i) => {
      const payload = new Uint8Array(laidOut.payloads[i]!);
      return fieldOf(field.name === image.name ? name : field.name, payload, laidOut.crc32[i]);
    });
    writer.discard();
    putSample(writer, rows, key, renamed, () => facts);
    return asItWas(true, precision, sha256);
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/** Writes a sample that has no image, or whose image is a field like any other. */
function packWithoutImage(
  writer: SampleWriter,
  rows: IndexRows,
  { key, image, fields }: LaidOut,
  sample: PlannedSample,
  { root, isHashed }: SampleOptions,
): PackedSample {
  const laidOut = layOutSample(writer, key, fields);
  try {
    const sha256 = isHashed === true ? sha256Of(payloadNamed(image.name, laidOut)!) : null;
    const facts = factsWithoutImage(sample, fields, root, (name) => payloadNamed(name, laidOut));
    commitSample(writer, rows, key, laidOut, facts);
    return asItWas(false, { narrowed: 0, refused: 0 }, sha256);
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/** Throws {@link BadFile} for an array that cannot be read. */
function factsWithoutImage(
  sample: PlannedSample,
  fields: readonly NewField[],
  root: string,
  payloadOf: PayloadOf,
): SampleFacts {
  for (const field of fields) {
    if (!/(^|\.)npy$/.test(field.name)) continue;
    try {
      npyRowOf(payloadOf(field.name)!);
    } catch (error) {
      if (!(error instanceof NpyError)) throw error;
      throw new BadFile(`${root}${(field as FileField).path} cannot be packed: ${error.message}.`);
    }
  }
  const payload = payloadOf(imageFieldOf(fields));
  const header = payload === undefined ? null : headerOf(payload);
  return factsOf(sample, header ?? { width: 0, height: 0, orientation: 1 }, payloadOf);
}

/**
 * Writes a sample after its image was processed. If `step` is null, a large sample is written in pieces. Throws {@link
 * BadFile} or {@link ImageError} if a file cannot be packed.
 */
export async function packSteppedSample(
  writer: SampleWriter,
  rows: IndexRows,
  sample: PlannedSample,
  options: SampleOptions,
  step: ImageStep | null,
): Promise<PackedSample> {
  const { key, image, fields } = layOut(sample, options);
  if (options.naming.primary !== null) {
    if (
      !goesInPieces(
        fields.reduce((sum, field) => sum + field.bytes, 0),
        writer,
      )
    )
      return packWithoutImage(writer, rows, { key, image, fields }, sample, options);
    const sha256 = options.isHashed === true ? sha256Of(await wholeOf(image)) : null;
    const arrays = fields.map(({ name }) => name).filter((name) => /(^|\.)npy$/.test(name));
    await putLargeSample(writer, rows, key, fields, [...arrays, 'cls'], (payloadOf) =>
      factsWithoutImage(sample, fields, options.root, payloadOf),
    );
    return asItWas(false, { narrowed: 0, refused: 0 }, sha256);
  }
  const path = options.root + image.path;
  const original = await wholeOf(image);
  const sha256 = options.isHashed === true ? sha256Of(original) : null;
  const before = probe(original, image.name, path, options.limits, sample.size);
  const { bytes: replacement, fieldFor, size, warnings, metadataKept } = await (step ?? asItIs)(original, before, path);
  const replaced = withImage(fields, key, image, fieldFor(image.name), replacement);
  let precision: PrecisionCounts = { narrowed: 0, refused: 0 };
  const facts = (payloadOf: PayloadOf) => {
    precision = precisionCounts({ name: fieldFor(image.name), header: before }, replaced, payloadOf);
    return factsOf(sample, size, payloadOf);
  };
  const bytes = replaced.reduce((sum, field) => sum + field.bytes, 0);
  if (goesInPieces(bytes, writer)) await putLargeSample(writer, rows, key, replaced, ['cls'], facts);
  else putSample(writer, rows, key, replaced, facts);
  return {
    renamed: kindOfField(image.name) !== before.kind,
    orientationBaked: before.orientation !== size.orientation,
    warnings,
    metadataKept,
    precision,
    sha256,
  };
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function wholeOf(field: NewField): Promise<Uint8Array> {
  const whole = new Uint8Array(field.bytes);
  if (field.pieces === undefined) field.put(whole);
  else {
    let at = 0;
    for await (const piece of field.pieces()) {
      whole.set(piece, at);
      at += piece.length;
    }
  }
  return whole;
}

const asItIs: ImageStep = async (bytes, header) => {
  const fieldFor = (named: string) => (kindOfField(named) === header.kind ? named : fieldOfKind(header.kind));
  return { bytes, fieldFor, size: header, warnings: 0, metadataKept: false };
};

/** A sample whose bytes were not changed. Spreading a constant object here took 5 microseconds per sample. */
function asItWas(renamed: boolean, precision: PrecisionCounts, sha256: string | null): PackedSample {
  return { renamed, orientationBaked: false, warnings: 0, metadataKept: false, precision, sha256 };
}

/**
 * Reads the image's header. Rejects a name with an unsupported extension whatever its content, and an image whose size
 * differs from that in its annotations.
 */
function probe(
  image: Uint8Array,
  field: string,
  path: string,
  { maxPixels, minSize }: ImageLimits,
  size: ImageSize,
): ImageHeader {
  const header = probeImage(image, path, maxPixels);
  if (size !== null) checkSize(header, size, path);
  if (Math.min(header.width, header.height) < minSize) {
    throw new BadFile(
      sentence`${path} has ${header.width}x${header.height} pixels, but ${optionName('minSize')} is ${minSize}.`,
    );
  }
  if (isImageField(field)) return header;
  const right = fieldOfKind(header.kind);
  throw new BadFile(
    `${path} has the extension of an unsupported image kind, but is a ${header.kind}; rename it to .${right}.`,
  );
}

/** Annotations refer to the image as it is stored, or as it is shown if it is stored rotated. */
function checkSize({ width, height, orientation }: ImageHeader, [w, h]: NonNullable<ImageSize>, path: string): void {
  const isTurned = orientation >= 5;
  if ((width === w && height === h) || (isTurned && width === h && height === w)) return;
  throw new BadFile(
    `${path} has ${width}x${height} pixels, but its annotations are for ${w}x${h}: correct them, or remove "width" and "height" from them if the boxes are right.`,
  );
}

interface LaidOut {
  readonly key: string;
  readonly image: FileField;
  readonly fields: readonly NewField[];
}

/** Returns the key of a sample and its fields. */
function layOut({ files, cls, texts }: PlannedSample, { root, naming, imageOnly }: SampleOptions): LaidOut {
  const image = new FileField(naming.fieldOf(files[0]!.path), files[0]!, root);
  const key = naming.keyOf(image.path);
  if (files.length === 1 && texts.length === 0) return { key, image, fields: withClass([image], cls, imageOnly) };
  const sidecars = files.slice(1).map((file) => new FileField(naming.fieldOf(file.path), file, root));
  const made = texts.map(([name, text]) => fieldOf(name, Buffer.from(text)));
  const twin = sidecars.find(({ name }) => made.some((field) => field.name === name));
  if (twin !== undefined) {
    throw new KeyCollisionError(
      { key, paths: [image.path, twin.path] },
      `${twin.path} would be the field "${twin.name}" of its image, but the annotations already fill that field; exclude or rename the file.`,
    );
  }
  return { key, image, fields: withClass<NewField>([image, ...sidecars, ...made], cls, imageOnly) };
}

/** Returns the fields with another name and other bytes for the image. */
function withImage(
  fields: readonly NewField[],
  key: string,
  image: FileField,
  name: string,
  payload: Uint8Array,
): NewField[] {
  refuseTwin(fields, key, image, name);
  return fields.map((field) => (field.name === image.name ? fieldOf(name, payload) : field));
}

/** Throws {@link KeyCollisionError} if another field already has the name that the image gets. */
function refuseTwin(fields: readonly NewField[], key: string, image: FileField, name: string): void {
  const twin = fields.find((field) => field.name !== image.name && field.name === name);
  if (twin === undefined) return;
  const { path } = twin as FileField;
  throw new KeyCollisionError(
    { key, paths: [image.path, path] },
    `${image.path} becomes the field "${name}" because of its content, and ${path} because of its name; rename or exclude one of them.`,
  );
}

function factsOf(
  { files, cls }: PlannedSample,
  { width, height, orientation }: Omit<ImageHeader, 'kind'>,
  payloadOf: PayloadOf,
): SampleFacts {
  const field = cls === -1 ? payloadOf('cls') : undefined;
  const own = field === undefined ? cls : classOfFile(field);
  return { source: files[0]!.path, width, height, orientation, cls: own };
}

/** Returns the number in a `.cls` file next to an image without another class; -1 if it is not a number. */
function classOfFile(payload: Uint8Array): number {
  if (payload.length > 10) return -1;
  const text = Buffer.from(payload).toString('latin1').trim();
  return /^\d+$/.test(text) && Number(text) <= 0x7fffffff ? Number(text) : -1;
}
