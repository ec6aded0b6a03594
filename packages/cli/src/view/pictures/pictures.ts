import { SampleDecodeError } from '@shardtool/base';
import { type ImageKind, imageKindOf, MAX_PIXELS, probeImage, stripMetadata } from '@shardtool/format';
import {
  codecReason,
  type Dataset,
  imageOf,
  readMask,
  type Sample,
  SampleDecoder,
  type StoredSampleImage,
} from '@shardtool/reader';
import sharp, { type Sharp } from 'sharp';
import { maskTile } from '../../preview/tiles.js';

export interface Picture {
  /** Media type. */
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Background of transparent pixels. */
const BACKGROUND = { r: 128, g: 128, b: 128 };

const SHOWN_BY_BROWSERS: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/webp',
  'image/gif',
  'image/avif',
]);

/** Kinds that sharp does not read. */
const NOT_BY_SHARP: ReadonlySet<ImageKind | undefined> = new Set<ImageKind | undefined>([undefined, 'bmp', 'pnm']);

/** Whether sharp can read an image. It cannot read arrays, for example. */
export function isReadBySharp(image: Uint8Array): boolean {
  return !NOT_BY_SHARP.has(imageKindOf(image));
}

/** Returns a sample's image. Throws {@link SampleDecodeError} if the sample has no image. */
function requiredImage(sample: Sample): StoredSampleImage {
  const image = imageOf(sample);
  if (image === null) throw new SampleDecodeError({}, 'it has no image');
  return image;
}

/**
 * Returns the decoder of an image. The image is turned upright by its orientation in EXIF or XMP, unless `isTurned` is
 * false.
 */
export async function opened(dataset: Dataset, sample: Sample, { isTurned = true } = {}): Promise<Sharp> {
  const { bytes } = requiredImage(sample);
  if (isReadBySharp(bytes)) {
    const options = { limitInputPixels: MAX_PIXELS, failOn: 'none', pages: 1 } as const;
    return isTurned ? sharp(withExifOrientation(bytes), options).autoOrient() : sharp(bytes, options);
  }
  // An array, or an image that only the loader's codecs decode.
  const decoder = await SampleDecoder.open(dataset, { maxPixels: MAX_PIXELS });
  try {
    const { image } = await decoder.get(sample.index);
    const { pixels, width, height } = image!;
    return sharp(new Uint8Array(pixels), { raw: { width, height, channels: 3 } });
  } finally {
    decoder.close();
  }
}

/** Writes the orientation into EXIF, where sharp looks for it. It may have been in XMP. */
function withExifOrientation(bytes: Uint8Array): Uint8Array {
  try {
    const header = probeImage(bytes);
    return header.orientation === 1 ? bytes : (stripMetadata(bytes, header) ?? bytes);
  } catch {
    return bytes;
  }
}

/**
 * Returns an image that fits into a square of `size` pixels. Smaller images keep their size. Throws {@link
 * SampleDecodeError}.
 */
export async function thumbnailOf(dataset: Dataset, index: number, size: number): Promise<Picture> {
  const sample = await dataset.get(index, { checksum: false });
  try {
    const image = await opened(dataset, sample);
    const small = image
      .resize(size, size, { fit: 'inside', withoutEnlargement: true })
      .flatten({ background: BACKGROUND });
    return { type: 'image/jpeg', bytes: await small.jpeg({ quality: 80 }).toBuffer() };
  } catch (cause) {
    throw undecodable(sample, cause);
  }
}

/** Returns an image in full size: as stored if browsers can show it, else as PNG. Throws {@link SampleDecodeError}. */
export async function fullPicture(dataset: Dataset, index: number): Promise<Picture> {
  const sample = await dataset.get(index, { checksum: false });
  try {
    const { type, bytes } = requiredImage(sample);
    if (SHOWN_BY_BROWSERS.has(type)) return { type, bytes };
    const image = await opened(dataset, sample, { isTurned: false });
    return { type: 'image/png', bytes: await image.png({ compressionLevel: 1 }).toBuffer() };
  } catch (cause) {
    throw undecodable(sample, cause);
  }
}

/**
 * Returns a mask in colours, one per value. The value 0 is transparent. The palette of the file is ignored, because
 * many palettes are all black. Throws {@link SampleDecodeError}.
 */
export async function maskPicture(dataset: Dataset, index: number, field: string): Promise<Picture> {
  const sample = await dataset.get(index, { checksum: false });
  const bytes = sample.fields[field];
  if (bytes === undefined) throw new SampleDecodeError({}, `it has no field "${field}"`);
  const { values, width, height } = readMask(bytes, MAX_PIXELS);
  return coloured(values, { width, height });
}

/** Returns the values of a mask in colours. The value 0 is transparent. */
export async function coloured(
  values: Uint8Array,
  { width, height }: { readonly width: number; readonly height: number },
): Promise<Picture> {
  const image = sharp(maskTile(values), { raw: { width, height, channels: 3 } }).joinChannel(
    Buffer.from(values.map((value) => (value > 0 ? 255 : 0))),
    { raw: { width, height, channels: 1 } },
  );
  return { type: 'image/png', bytes: await image.png({ compressionLevel: 1 }).toBuffer() };
}

/** Returns the names of the fields that are masks of the image. */
export function masksOf({ fields }: Pick<Sample, 'fields'>): readonly string[] {
  return Object.entries(fields).flatMap(([name, bytes]) => (isMask(name, bytes) ? [name] : []));
}

/** True if a field may be a mask of the image: a PNG or NumPy array that is not the image itself. */
function isMask(field: string, bytes: Uint8Array): boolean {
  if (!/\.(png|npy)$/.test(field)) return false;
  try {
    readMask(bytes, MAX_PIXELS);
    return true;
  } catch (error) {
    if (error instanceof SampleDecodeError) return false;
    throw error;
  }
}

function undecodable({ shard, key }: Sample, cause: unknown): SampleDecodeError {
  const reason = cause instanceof SampleDecodeError ? cause.reason : codecReason(cause as Error);
  return new SampleDecodeError({ shard, key }, reason, { cause });
}
