/** Browsers turn images by EXIF, but pages cannot read its tags. */
export async function exifLines(): Promise<readonly [tag: string, value: string][]> {
  return [];
}
