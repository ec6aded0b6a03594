import { encodeNpyImage, type ImageHeader, type ImageKind, stripMetadata } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { FailOnOptions, Sharp } from 'sharp';
import type { ImageFormat, RecodeOptions } from '../options.js';

/** A re-encoded image. */
export interface RecodedImage {
  readonly bytes: Uint8Array;
  /** Size of the new image, after the EXIF orientation was applied. */
  readonly width: number;
  readonly height: number;
  readonly format: ImageFormat;
  /** 1 if the decoder warned about the image, otherwise 0. */
  readonly warnings: number;
}

/**
 * Re-encodes one image. Rejects with SampleDecodeError for images that {@link Checker.check} rejects, and with the
 * errors of sharp.
 */
export type Recoder = (image: Uint8Array, header: ImageHeader) => Promise<RecodedImage>;

/** Output format for each kind. Kinds without a suitable encoder become PNG, which is lossless. */
const SAME_KIND: Readonly<Record<ImageKind, ImageFormat>> = {
  jpeg: 'jpg',
  png: 'png',
  webp: 'webp',
  gif: 'png',
  tiff: 'png',
  avif: 'png',
  bmp: 'png',
  pnm: 'png',
};

/**
 * Loads sharp and returns a function that resizes and encodes images. It uses one thread per image, since the workers
 * are already threads. Metadata is removed, colours become sRGB, and a JPEG loses its alpha channel without blending.
 * `checker` decides which images are damaged.
 */
export async function createRecoder(options: RecodeOptions, checker: Checker): Promise<Recoder> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return async (image, header) => {
    const { kind, orientation } = header;
    const readable = await readableBySharp(image, header);
    const encoded = async (failOn: FailOnOptions): Promise<Omit<RecodedImage, 'warnings'>> => {
      const input = sharp(readable, { failOn });
      return encode(orientation === 1 ? input : input.autoOrient(), options.imageFormat ?? SAME_KIND[kind], options);
    };
    const checked = async () => {
      const { warnings } = await checker.check(image);
      return { ...(await encoded('none')), warnings };
    };
    // JPEGs are checked by another decoder than sharp's, which detects other damage.
    if (kind === 'jpeg') return checked();
    try {
      return { ...(await encoded('warning')), warnings: 0 };
    } catch {
      // libvips now rejects any irregular image.
      return checked();
    }
  };

  /** Returns the image itself, or one with the same pixels whose colours and orientation sharp can read. */
  async function readableBySharp(image: Uint8Array, header: ImageHeader): Promise<Uint8Array> {
    const { kind, orientation } = header;
    const raw = await checker.misreadPixels(image);
    // Not compressed, since it is decoded again immediately.
    const asPng = (picture: Sharp) => picture.withMetadata({ orientation }).png({ compressionLevel: 0 }).toBuffer();
    if (raw !== null) {
      const { data, width, height } = raw;
      return asPng(sharp(data, { raw: { width, height, channels: 3 } }));
    }
    if (orientation === 1) return image;
    // The only metadata that is kept is the orientation, wherever it was stored.
    return kind === 'tiff' ? asPng(sharp(image)) : (stripMetadata(image, header) ?? image);
  }
}

async function encode(
  picture: Sharp,
  format: ImageFormat,
  { resize, quality }: RecodeOptions,
): Promise<Omit<RecodedImage, 'warnings'>> {
  let pipeline = picture;
  if (resize !== undefined) pipeline = pipeline.resize(resize, resize, { fit: 'outside', withoutEnlargement: true });
  if (format === 'npy') {
    const pixels = pipeline.toColourspace('srgb').removeAlpha().raw({ depth: 'uchar' });
    const { data, info } = await pixels.toBuffer({ resolveWithObject: true });
    return { bytes: encodeNpyImage(data, info.width, info.height), width: info.width, height: info.height, format };
  }
  if (format === 'jpg') pipeline = pipeline.removeAlpha().jpeg({ quality });
  else if (format === 'webp') pipeline = pipeline.webp({ quality });
  else pipeline = pipeline.png();
  const { data, info } = await pipeline.toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.height, format };
}
