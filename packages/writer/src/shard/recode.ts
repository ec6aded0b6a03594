import { encodeNpyImage, type ImageHeader, type ImageKind, stripMetadata } from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { FailOnOptions, Sharp } from 'sharp';
import type { ImageFormat, RecodeOptions } from '../options.js';

/** An image that was encoded again. */
export interface RecodedImage {
  readonly bytes: Uint8Array;
  /** Of the new bytes; the EXIF orientation is baked into them. */
  readonly width: number;
  readonly height: number;
  readonly format: ImageFormat;
  /** 1 if something in the image was odd, although it could be decoded. */
  readonly warnings: number;
}

/** Encodes one image again. Rejects with SampleDecodeError for what {@link Checker.check} refuses, and with what sharp throws. */
export type Recoder = (image: Uint8Array, header: ImageHeader) => Promise<RecodedImage>;

/** Kinds that have no encoder here, or none worth it, become PNG: nothing of the pixels is lost. */
const SAME_KIND: Readonly<Record<ImageKind, ImageFormat>> = {
  jpeg: 'jpg',
  png: 'png',
  webp: 'webp',
  gif: 'png',
  tiff: 'png',
  avif: 'png',
};

/**
 * Loads sharp and returns what resizes and encodes images with it. One thread an image: the workers are the threads.
 * Metadata is left out, colours become sRGB, and a JPEG loses its alpha channel without blending. What is a damaged image
 * `checker` says.
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
    // JPEGs are checked by another decoder than sharp's, which sees other damage.
    if (kind === 'jpeg') return checked();
    try {
      return { ...(await encoded('warning')), warnings: 0 };
    } catch {
      // Now libvips refuses whatever is odd in an image.
      return checked();
    }
  };

  /** The image itself, or one with the same pixels whose colours and orientation sharp understands. */
  async function readableBySharp(image: Uint8Array, header: ImageHeader): Promise<Uint8Array> {
    const { kind, orientation } = header;
    const raw = await checker.misreadPixels(image);
    // Not compressed, since it is decoded again at once.
    const asPng = (picture: Sharp) => picture.withMetadata({ orientation }).png({ compressionLevel: 0 }).toBuffer();
    if (raw !== null) {
      const { data, width, height } = raw;
      return asPng(sharp(data, { raw: { width, height, channels: 3 } }));
    }
    if (orientation === 1) return image;
    // What is left of the metadata is the orientation, wherever it was.
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
