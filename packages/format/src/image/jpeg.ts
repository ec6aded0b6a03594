import { exifOrientation, hasExifPrefix } from './exif.js';
import { type HeaderTrouble, type ImageHeader, u16be } from './header.js';
import { orientationOf, xmpOrientation } from './orientation.js';

/** Markers of ITU-T T.81, table B.1. */
const SOI = 0xd8;
const EOI = 0xd9;
const SOS = 0xda;
const APP1 = 0xe1;

/** The prefix of XMP data. XMP specification, part 3, 1.1.3. */
const XMP = Buffer.from('http://ns.adobe.com/xap/1.0/\0', 'latin1');

/**
 * Walks the segments up to the start of the first scan. ITU-T T.81, B.1.1 and B.2.2; like libjpeg, it skips bytes
 * between two segments. A file that is truncated after the frame header still has its size.
 */
export function readJpegHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  let width = -1;
  let height = -1;
  let precision = 8;
  let exif: number | null = null;
  let xmp = -1;
  let ended = false;
  let at = 2;
  while (at >= 0 && at < bytes.length) {
    if (bytes[at] !== 0xff) {
      at = bytes.indexOf(0xff, at);
      continue;
    }
    while (bytes[at] === 0xff) at++;
    const marker = bytes[at++]!;
    if (!hasLength(marker)) continue;
    ended = marker === SOS || marker === EOI;
    if (ended || at + 2 > bytes.length) break;
    const end = at + Math.max(2, u16be(bytes, at));
    if (isFrame(marker) && width < 0) {
      if (at + 7 > bytes.length) break;
      precision = bytes[at + 2]!;
      height = u16be(bytes, at + 3);
      width = u16be(bytes, at + 5);
    } else if (marker === APP1) {
      const stop = Math.min(end, bytes.length);
      if (exif === null && hasExifPrefix(bytes, at + 2, stop)) exif = exifOrientation(bytes, at + 2, stop);
      else if (XMP.equals(bytes.subarray(at + 2, at + 2 + XMP.length)))
        xmp = xmpOrientation(bytes.subarray(at + 2 + XMP.length, stop));
    }
    at = end;
  }
  if (width < 0) return ended ? 'no-size' : 'cut';
  if (width === 0 || height === 0) return 'no-size';
  const orientation = orientationOf(exif ?? -1, xmp);
  return { kind: 'jpeg', width, height, orientation, ...(precision > 8 && { precision: 'refused' }) };
}

/** False for a stuffed zero, TEM, RST0 to RST7 and SOI, which have no length. */
function hasLength(marker: number): boolean {
  return marker > 1 && (marker < 0xd0 || marker > SOI);
}

/** Whether this is one of SOF0 to SOF15; DHT, JPG and DAC are between them. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}
