/** How XMP stores `tiff:Orientation` (XMP specification, part 2, 2.5): as an attribute or as an element. */
const NAME = Buffer.from('tiff:Orientation', 'latin1');
const SETS = ['="', '>'];

/** The orientation in XMP data; -1 if there is none. */
export function xmpOrientation(xmp: Uint8Array): number {
  const text = Buffer.from(xmp.buffer, xmp.byteOffset, xmp.byteLength);
  for (let at = text.indexOf(NAME); at !== -1; at = text.indexOf(NAME, at + 1)) {
    for (const sets of SETS) {
      const value = at + NAME.length + sets.length;
      if (text.toString('latin1', at + NAME.length, value) !== sets) continue;
      const digit = text.toString('latin1', value, value + 1);
      if (/^\d$/.test(digit)) return Number(digit);
    }
  }
  return -1;
}

/**
 * The orientation of an image, 1..8, from the tag in its Exif data and from its XMP; -1 means absent. XMP counts only
 * if Exif has none, as in Pillow. 1 if neither has one, or if it is out of range.
 */
export function orientationOf(exif: number, xmp: number): number {
  const said = exif === -1 ? xmp : exif;
  return said >= 1 && said <= 8 ? said : 1;
}
