import { fieldOfKind, type ImageKind } from '../image/kind.js';

/** What stands at the beginning of files of each kind, and where. */
const MARKS: readonly (readonly [at: number, mark: string, kind: ImageKind])[] = [
  [0, '\xff\xd8\xff', 'jpeg'],
  [0, '\x89PNG\r\n\x1a\n', 'png'],
  [8, 'WEBP', 'webp'],
  [0, 'GIF8', 'gif'],
  [0, 'II*\0', 'tiff'],
  [0, 'MM\0*', 'tiff'],
  [4, 'ftypavif', 'avif'],
  [4, 'ftypavis', 'avif'],
];

/** The field of a value that is an image alone, from its first 12 bytes; `bin` where it is none that is known. */
export function imageField(head: Buffer): string {
  const beginning = head.toString('latin1', 0, 12);
  const found = MARKS.find(([at, mark]) => beginning.startsWith(mark, at));
  return found === undefined ? 'bin' : fieldOfKind(found[2]);
}
