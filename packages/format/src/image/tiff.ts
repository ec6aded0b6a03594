import { firstDirectory, IMAGE_LENGTH, IMAGE_WIDTH, orientationIn, tagValue } from './exif.js';
import type { HeaderTrouble, ImageHeader } from './header.js';

/** The first image of a TIFF file. TIFF 6.0, sections 2 and 8. Its directory may stand anywhere, even at the end. */
export function readTiffHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  const directory = firstDirectory(bytes, 0, bytes.length);
  if (directory === null) return 'cut';
  const width = tagValue(bytes, directory, IMAGE_WIDTH);
  const height = tagValue(bytes, directory, IMAGE_LENGTH);
  if (width <= 0 || height <= 0) return 'no-size';
  return { kind: 'tiff', width, height, orientation: orientationIn(bytes, directory) };
}
