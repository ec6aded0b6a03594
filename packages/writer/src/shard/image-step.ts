import { ShardtoolError } from '@shardtool/base';
import {
  fieldOfKind,
  type ImageHeader,
  type ImageKind,
  kindOfField,
  NPY_FIELD,
  stripMetadata,
} from '@shardtool/format';
import type { Checker } from '@shardtool/reader';
import type { ImageFormat, ImageStepOptions } from '../options.js';
import { BadFile } from '../source/source-file.js';
import { createRecoder, type RecodedImage, type Recoder } from './recode.js';

/** An image as it is stored in the shard. */
export interface SteppedImage {
  readonly bytes: Uint8Array;
  /** Field of the image, if its file name gives the field `named`. */
  fieldFor(named: string): string;
  readonly size: Pick<ImageHeader, 'width' | 'height' | 'orientation'>;
  /** Number of decoder warnings. */
  readonly warnings: number;
  /** True if metadata cannot be removed from an image of this kind without re-encoding it. */
  readonly metadataKept: boolean;
}

/** `path` is the image's path, for messages. Throws or rejects with {@link BadFile} if the image cannot be packed. */
export type ImageStep = (image: Uint8Array, header: ImageHeader, path: string) => Promise<SteppedImage>;

/** Returns null if the bytes are stored unchanged and only their header is needed. */
export async function createImageStep(options: ImageStepOptions): Promise<ImageStep | null> {
  const { decode, maxPixels, stripMetadata: strips, recode: recodeOptions } = options;
  if (!decode && !strips && recodeOptions === null) return null;
  const checker = decode || recodeOptions !== null ? await loadChecker(maxPixels) : null;
  const recode = recodeOptions && (await createRecoder(recodeOptions, checker!));
  return async (image, header, path) => {
    const warnings = decode ? await checkWhole(checker!, image, path) : 0;
    if (recode !== null) {
      // Re-encoded images have no metadata.
      const { bytes, format, width, height, warnings: seen } = await recodeOrRefuse(recode, image, header, path);
      return {
        bytes,
        fieldFor: (named) => recodedField(format, named),
        size: { width, height, orientation: 1 },
        warnings: Math.max(warnings, seen),
        metadataKept: false,
      };
    }
    const stripped = strips ? stripMetadata(image, header) : image;
    const fieldFor = (named: string) => fieldOf(header.kind, named);
    return { bytes: stripped ?? image, fieldFor, size: header, warnings, metadataKept: stripped === null };
  };
}

/** Field of a re-encoded image. */
function recodedField(format: ImageFormat, named: string): string {
  return format === 'npy' ? NPY_FIELD : fieldOf(format === 'jpg' ? 'jpeg' : format, named);
}

/** Field of an image: the one in its file name if that matches the content. */
function fieldOf(kind: ImageKind, named: string): string {
  return kindOfField(named) === kind ? named : fieldOfKind(kind);
}

/** Loads the codecs, which only checks need. */
async function loadChecker(maxPixels: number): Promise<Checker> {
  const { createChecker } = await import('@shardtool/reader');
  return createChecker({ maxPixels });
}

async function checkWhole(checker: Checker, image: Uint8Array, path: string): Promise<number> {
  try {
    return (await checker.check(image)).warnings;
  } catch (cause) {
    if (!(cause instanceof ShardtoolError)) throw cause;
    throw notWhole(path, cause);
  }
}

async function recodeOrRefuse(
  recode: Recoder,
  image: Uint8Array,
  header: ImageHeader,
  path: string,
): Promise<RecodedImage> {
  try {
    return await recode(image, header);
  } catch (cause) {
    if (cause instanceof ShardtoolError) throw notWhole(path, cause);
    const { codecReason } = await import('@shardtool/reader');
    throw new BadFile(`${path} cannot be re-encoded (${codecReason(cause as Error)}).`, { cause });
  }
}

function notWhole(path: string, cause: ShardtoolError): BadFile {
  return new BadFile(`${path} cannot be fully decoded: ${cause.message}.`, { cause });
}
