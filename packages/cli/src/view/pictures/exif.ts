/** The EXIF block of an image as lines of text. */
import { MAX_PIXELS } from '@shardtool/format';
import readExif from 'exif-reader';
import sharp from 'sharp';

export type ExifLine = readonly [tag: string, value: string];

/** Maximum number of tags, and of characters per value. */
const MOST_TAGS = 200;
const MOST_CHARACTERS = 500;

/** Returns the EXIF tags of the image, or no lines if there is no EXIF block. Throws if the block cannot be read. */
export async function exifLines(image: Uint8Array): Promise<ExifLine[]> {
  const { exif } = await sharp(image, { limitInputPixels: MAX_PIXELS, failOn: 'none' }).metadata();
  if (exif === undefined) return [];
  const lines: ExifLine[] = [];
  for (const [group, tags] of Object.entries(readExif(exif))) {
    if (typeof tags !== 'object') continue;
    for (const [tag, value] of Object.entries(tags)) {
      // These tags contain offsets of further groups of tags.
      if (/Tag$/.test(tag)) continue;
      lines.push([`${group}.${tag}`, shown(value)]);
      if (lines.length === MOST_TAGS) return lines;
    }
  }
  return lines;
}

function shown(value: unknown): string {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'no date' : value.toISOString();
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  return (Array.isArray(value) ? value.join(', ') : String(value)).slice(0, MOST_CHARACTERS);
}
