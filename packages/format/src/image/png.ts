import { inflateSync } from 'node:zlib';
import { exifOrientation } from './exif.js';
import { fourCC, type HeaderTrouble, type ImageHeader, u32be } from './header.js';
import { orientationOf, xmpOrientation } from './orientation.js';

const IHDR = fourCC('IHDR');
const EXIF = fourCC('eXIf');
const IEND = fourCC('IEND');
const TEXT_CHUNKS: ReadonlySet<number> = new Set(['tEXt', 'zTXt', 'iTXt'].map(fourCC));
const DEFLATED_TEXT = fourCC('zTXt');
const INTERNATIONAL_TEXT = fourCC('iTXt');

/** How ImageMagick stored Exif before the eXIf chunk existed: as hexadecimal digits. */
const RAW_PROFILE = 'Raw profile type exif';
/** XMP specification, part 3, 1.1.5. */
const XMP = 'XML:com.adobe.xmp';
/** Maximum length of a keyword. PNG (third edition), 11.3.3.1. */
const KEYWORD_BYTES = 79;
/** Maximum length of a text; the limit of Pillow. */
const MOST_TEXT_BYTES = 1 << 20;

const SIGNATURE_BYTES = 8;
/** Offset of the bit depth in IHDR, the first chunk. PNG (third edition), 11.2.1. */
const BIT_DEPTH_AT = 24;
/** Length, type and crc of a chunk. */
const FRAME_BYTES = 12;

/** PNG (third edition), 5.3 "Chunk layout", 11.2.1 IHDR, 11.3.3 texts and 11.3.4.5 eXIf, which may also follow the pixels. */
export function readPngHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length <= BIT_DEPTH_AT) return 'cut';
  const width = u32be(bytes, 16);
  const height = u32be(bytes, 20);
  if (u32be(bytes, 12) !== IHDR || width === 0 || height === 0) return 'no-size';
  const isDeep = bytes[BIT_DEPTH_AT]! > 8;
  return { kind: 'png', width, height, orientation: orientationIn(bytes), ...(isDeep && { precision: 'narrowed' }) };
}

function orientationIn(bytes: Uint8Array): number {
  let exif: number | null = null;
  const texts = new Map<string, Uint8Array>();
  let at = SIGNATURE_BYTES;
  while (at + FRAME_BYTES <= bytes.length) {
    const length = u32be(bytes, at);
    const type = u32be(bytes, at + 4);
    const end = Math.min(at + 8 + length, bytes.length);
    if (type === EXIF) exif ??= exifOrientation(bytes, at + 8, end);
    else if (type === IEND) break;
    else if (TEXT_CHUNKS.has(type)) {
      const keyword = keywordOf(bytes, at + 8, end);
      if (keyword === RAW_PROFILE || keyword === XMP) texts.set(keyword, bytes.subarray(at + 4, end));
    }
    at += FRAME_BYTES + length;
  }
  const [profile, xmp] = [texts.get(RAW_PROFILE), texts.get(XMP)];
  if (profile !== undefined) exif ??= rawProfileOrientation(textOf(profile));
  return orientationOf(exif ?? -1, xmp === undefined ? -1 : xmpOrientation(textOf(xmp)));
}

function keywordOf(bytes: Uint8Array, start: number, end: number): string {
  const stop = bytes.subarray(start, Math.min(end, start + KEYWORD_BYTES + 1)).indexOf(0);
  return stop < 0 ? '' : Buffer.from(bytes.subarray(start, start + stop)).toString('latin1');
}

/** The text of a chunk, which begins with its type; empty if it cannot be inflated. */
function textOf(chunk: Uint8Array): Uint8Array {
  const type = u32be(chunk, 0);
  const content = chunk.subarray(chunk.indexOf(0, 4) + 1);
  if (type === DEFLATED_TEXT) return inflated(content.subarray(1));
  if (type !== INTERNATIONAL_TEXT) return content;
  // A compression flag and method; then a language and a translated keyword, which end with a zero.
  const text = content.subarray(content.indexOf(0, content.indexOf(0, 2) + 1) + 1);
  return content[0] === 1 ? inflated(text) : text;
}

function inflated(data: Uint8Array): Uint8Array {
  try {
    return inflateSync(data, { maxOutputLength: MOST_TEXT_BYTES });
  } catch {
    return new Uint8Array(0);
  }
}

/** The digits follow a name and a length, each on a separate line. */
function rawProfileOrientation(text: Uint8Array): number {
  const digits = Buffer.from(text).toString('latin1').split('\n').slice(3).join('').replace(/\s/g, '');
  const exif = Buffer.from(digits, 'hex');
  return exifOrientation(exif, 0, exif.length);
}
