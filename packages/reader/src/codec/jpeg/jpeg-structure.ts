import { SampleDecodeError } from '@shardtool/base';

/** The structure of a JPEG, read from its markers without decoding. ITU-T T.81, annex B. */
export interface JpegStructure {
  /** Number of colour components: 1 for gray, 3 for colour, 4 for CMYK or YCCK. */
  readonly components: number;
  readonly scans: number;
  /** Each pixel needs several scans: the image is progressive, or has one scan per component. */
  readonly layered: boolean;
  /** The image uses arithmetic instead of Huffman coding. */
  readonly arithmetic: boolean;
  /** An end marker (EOI) follows the last scan. */
  readonly ended: boolean;
}

/** A progressive file with more scans is rejected as a decompression bomb. */
export const MAX_SCANS = 500;

const EOI = 0xd9;
const SOS = 0xda;

/** Walks the markers up to EOI or the end of the bytes. Never throws: it skips everything that it does not know. */
export function jpegStructure(bytes: Uint8Array): JpegStructure {
  let components = 0;
  let scans = 0;
  let layered = false;
  let arithmetic = false;
  let at = 0;
  for (;;) {
    at = bytes.indexOf(0xff, at);
    while (at >= 0 && bytes[at] === 0xff) at++;
    const marker = at < 0 ? undefined : bytes[at++];
    if (marker === undefined || marker === EOI) {
      return { components, scans, layered, arithmetic, ended: marker === EOI };
    }
    if (hasNoLength(marker)) continue;
    if (startsFrame(marker)) {
      components = bytes[at + 7] ?? 0;
      layered = isProgressive(marker);
      arithmetic = marker >= 0xc9;
    } else if (marker === SOS) {
      scans++;
      layered ||= bytes[at + 2]! < components;
    }
    at += (bytes[at]! << 8) | bytes[at + 1]!;
  }
}

/** Throws SampleDecodeError for a file that would take minutes to decode. */
export function refuseBomb({ scans }: JpegStructure): void {
  if (scans > MAX_SCANS)
    throw new SampleDecodeError(
      {},
      `it has ${scans} scans, more than the limit of ${MAX_SCANS}, so it may be a decompression bomb`,
    );
}

/** A stuffed zero, TEM, RST0 to RST7 and SOI have no length. */
function hasNoLength(marker: number): boolean {
  return marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

/** SOF0 to SOF15. The codes of DHT, JPG and DAC are between them. */
function startsFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

/** SOF2, SOF6, SOF10, SOF14. */
function isProgressive(frame: number): boolean {
  return (frame & 3) === 2;
}
