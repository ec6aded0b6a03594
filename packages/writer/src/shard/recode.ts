import { encodeNpyImage, type ImageKind } from '@shardtool/format';
import type { ImageFormat, RecodeOptions } from '../options.js';

/** An image that was encoded anew. */
export interface RecodedImage {
  readonly bytes: Uint8Array;
  /** Of the new bytes; the EXIF orientation is baked into them. */
  readonly width: number;
  readonly height: number;
  readonly format: ImageFormat;
}

/** Encodes one image anew. Throws what sharp throws where the image is damaged or cut short. */
export type Recoder = (image: Uint8Array, kind: ImageKind) => Promise<RecodedImage>;

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
 * Metadata is left out, colours become sRGB, and a JPEG loses its alpha channel without blending.
 */
export async function createRecoder(options: RecodeOptions): Promise<Recoder> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  const { resize, quality, imageFormat } = options;
  return async (image, kind) => {
    const format = imageFormat ?? SAME_KIND[kind];
    let pipeline = sharp(image, { failOn: 'truncated' }).autoOrient();
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
  };
}
