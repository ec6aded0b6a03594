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

/** An image as it goes into the shard. */
export interface SteppedImage {
  readonly bytes: Uint8Array;
  /** What the field is called, where its file's name says `named`. */
  fieldFor(named: string): string;
  readonly size: Pick<ImageHeader, 'width' | 'height' | 'orientation'>;
  /** Things in it that were odd although it could be decoded. */
  readonly warnings: number;
  /** Its kind keeps metadata where they cannot be taken out without encoding anew. */
  readonly metadataKept: boolean;
}

/** `path` is the image's, for messages. Throws or rejects with {@link BadFile} where the image is not to be packed. */
export type ImageStep = (image: Uint8Array, header: ImageHeader, path: string) => Promise<SteppedImage>;

/** Null where the bytes pass through as they are and nothing need be known of them but their header. */
export async function createImageStep(options: ImageStepOptions): Promise<ImageStep | null> {
  const { decode, maxPixels, stripMetadata: strips, recode: recodeOptions } = options;
  if (!decode && !strips && recodeOptions === null) return null;
  const checker = decode || recodeOptions !== null ? await loadChecker(maxPixels) : null;
  const recode = recodeOptions && (await createRecoder(recodeOptions, checker!));
  return async (image, header, path) => {
    const warnings = decode ? await checkWhole(checker!, image, path) : 0;
    if (recode !== null) {
      // What is encoded anew has no metadata.
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

/** The field of an image that was encoded anew. */
function recodedField(format: ImageFormat, named: string): string {
  return format === 'npy' ? NPY_FIELD : fieldOf(format === 'jpg' ? 'jpeg' : format, named);
}

/** The one that its name says, where that is right. */
function fieldOf(kind: ImageKind, named: string): string {
  return kindOfField(named) === kind ? named : fieldOfKind(kind);
}

/** Codecs are loaded where something is checked, and nowhere else. */
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
    throw new BadFile(`${path} cannot be encoded again (${codecReason(cause as Error)}).`, { cause });
  }
}

function notWhole(path: string, cause: ShardtoolError): BadFile {
  return new BadFile(`${path} cannot be decoded whole: ${cause.message}.`, { cause });
}
