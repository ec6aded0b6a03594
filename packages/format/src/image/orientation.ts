/** How `tiff:Orientation` is written in XMP (XMP specification, part 2, 2.5): as an attribute or as an element. */
const NAME = Buffer.from('tiff:Orientation', 'latin1');
const SETS = ['="', '>'];

/** The orientation that XMP has; -1 where it has none. */
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
 * The orientation of an image, 1..8, from the tag of its Exif data and from its XMP; -1 stands for none. XMP counts only if
 * Exif says nothing, as in Pillow. 1 where neither has one, or one out of range.
 */
export function orientationOf(exif: number, xmp: number): number {
  const said = exif === -1 ? xmp : exif;
  return said >= 1 && said <= 8 ? said : 1;
}
