import { fourCC, u16be, u32be } from '../header.js';
import { Pieces } from './pieces.js';

/** Markers of ITU-T T.81, table B.1. */
const DHT = 0xc4;
const DAC = 0xcc;
const SOI = 0xd8;
const EOI = 0xd9;
const SOS = 0xda;
const DQT = 0xdb;
const DNL = 0xdc;
const DRI = 0xdd;
const APP0 = 0xe0;
const APP2 = 0xe2;
const APP14 = 0xee;
const APP15 = 0xef;
const COM = 0xfe;

const JFIF = fourCC('JFIF');
const ICC = fourCC('ICC_');
const ADOBE = fourCC('Adob');

/**
 * Keeps everything that pixels and colours need: the segments of the coding itself, JFIF, ICC profile and Adobe's
 * colour transform, and every byte from the first scan to the end marker. Removes Exif, XMP, IPTC, thumbnails,
 * comments, bytes between segments and everything after the end marker. ITU-T T.81, annex B. `exif` replaces the Exif
 * data; null removes it. Returns null if the segments do not lead to the end marker, so that coded data is never taken
 * for metadata.
 */
export function stripJpeg(bytes: Uint8Array, exif: Uint8Array | null): Uint8Array | null {
  const kept = new Pieces(bytes);
  kept.keep(0, 2);
  let isOpen = exif !== null;
  for (let at = 2; at < bytes.length; ) {
    const marker = bytes[at] === 0xff ? bytes[at + 1] : undefined;
    if (marker === undefined || marker === 0xff) {
      at = bytes.indexOf(0xff, at + 1);
      if (at === -1) break;
      continue;
    }
    if (isOpen && marker !== APP0) {
      kept.add(exifSegment(exif!));
      isOpen = false;
    }
    if (marker === SOS) {
      const end = endOfImage(bytes, at);
      if (end === null) return null;
      kept.keep(at, end);
      return kept.joined();
    }
    const end = standsAlone(marker) ? at + 2 : at + 2 + Math.max(2, u16be(bytes, at + 2));
    if (!isMetadata(bytes, at, marker)) kept.keep(at, end);
    at = end;
  }
  return null;
}

function standsAlone(marker: number): boolean {
  return marker <= 1 || (marker >= 0xd0 && marker <= EOI);
}

function isMetadata(bytes: Uint8Array, at: number, marker: number): boolean {
  if (marker === COM) return true;
  if (marker < APP0 || marker > APP15) return false;
  const name = at + 8 <= bytes.length ? u32be(bytes, at + 4) : 0;
  if (marker === APP0) return name !== JFIF;
  if (marker === APP2) return name !== ICC;
  return marker !== APP14 || name !== ADOBE;
}

/**
 * The offset after the end marker, searched from the first scan on. Null if another marker comes first, or if there is
 * none.
 */
function endOfImage(bytes: Uint8Array, scan: number): number | null {
  for (let at = scan; ; ) {
    const marker = bytes[at + 1]!;
    if (marker === EOI) return isEnd(bytes, at + 2) ? at + 2 : null;
    if (!mayFollowScan(marker) || at + 4 > bytes.length) return null;
    const end = at + 2 + u16be(bytes, at + 2);
    at = marker === SOS ? endOfScan(bytes, end) : end;
    while (bytes[at] === 0xff && bytes[at + 1] === 0xff) at++;
    if (at + 2 > bytes.length || bytes[at] !== 0xff) return null;
  }
}

function mayFollowScan(marker: number): boolean {
  return [SOS, DHT, DAC, DQT, DNL, DRI, COM].includes(marker) || (marker >= APP0 && marker <= APP15);
}

/**
 * Whether an end marker is that of the image. A damaged byte in the coded data can look like one; then the bytes after
 * it are not another image, and contain another end marker.
 */
function isEnd(bytes: Uint8Array, end: number): boolean {
  let rest = end;
  while (bytes[rest] === 0) rest++;
  if (bytes[rest] === 0xff && bytes[rest + 1] === SOI) return true;
  for (let at = bytes.indexOf(0xff, rest); at !== -1; at = bytes.indexOf(0xff, at + 1))
    if (bytes[at + 1] === EOI) return false;
  return true;
}

/** The offset of the marker after the coded data that begin at `from`. A zero after 0xff, RSTn and fill bytes belong to the data. */
function endOfScan(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(0xff, from); at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    const next = bytes[at + 1];
    if (next !== undefined && next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at;
  }
  return bytes.length;
}

function exifSegment(tiff: Uint8Array): Uint8Array {
  const head = Buffer.from([0xff, 0xe1, 0, 8 + tiff.length, ...Buffer.from('Exif\0\0')]);
  return Buffer.concat([head, tiff]);
}
