/** The kinds of images that are packed and decoded. */
export type ImageKind = 'jpeg' | 'png' | 'gif' | 'webp' | 'tiff' | 'avif';

/** The field that an image of each kind is stored under. */
const FIELD: Readonly<Record<ImageKind, string>> = {
  jpeg: 'jpg',
  png: 'png',
  gif: 'gif',
  webp: 'webp',
  tiff: 'tif',
  avif: 'avif',
};

/** Names under which files and foreign archives hold images of each kind. */
const KIND_OF_FIELD: ReadonlyMap<string, ImageKind> = new Map([
  ['jpg', 'jpeg'],
  ['jpeg', 'jpeg'],
  ['jpe', 'jpeg'],
  ['jfif', 'jpeg'],
  ['png', 'png'],
  ['gif', 'gif'],
  ['webp', 'webp'],
  ['tif', 'tiff'],
  ['tiff', 'tiff'],
  ['avif', 'avif'],
]);

/** Extensions of images that are refused by name, so that such a file is an error and not something to skip. */
const REFUSED_EXTENSIONS: ReadonlySet<string> = new Set(
  'bmp dib heic heif hif ico j2k jp2 jxl pbm pgm pnm ppm psd qoi'.split(' '),
);

/** `jpg` for a JPEG, `tif` for a TIFF: the canonical field name. */
export function fieldOfKind(kind: ImageKind): string {
  return FIELD[kind];
}

/** The kind that a field's name promises; undefined where it names no image. `seg.png` is a field of its own. */
export function kindOfField(field: string): ImageKind | undefined {
  return KIND_OF_FIELD.get(field);
}

/** Whether a field of this name holds the image of its sample. `seg.png` is no such name: it belongs to an image. */
export function isImageField(field: string): boolean {
  return KIND_OF_FIELD.has(field);
}

/**
 * Which of a sample's fields may be its image, in the order in which they are looked for: those of an image kind; where there
 * is none, `npy`, an uncompressed image.
 */
export function imageFields(fields: Iterable<string>): string[] {
  const names = [...fields];
  const images = names.filter(isImageField).sort();
  return images.length > 0 ? images : names.filter((name) => name === 'npy');
}

/** Whether a file of this extension (lower case, without the dot) is an image, be it one that is refused. */
export function isImageExtension(extension: string): boolean {
  return KIND_OF_FIELD.has(extension) || REFUSED_EXTENSIONS.has(extension);
}
