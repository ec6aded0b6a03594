import { ImageError, SampleDecodeError } from '@shardtool/base';

/** What a decoder or a header's reader threw, as an error of the image. */
export function asDecodeError(error: Error): Error {
  if (error instanceof SampleDecodeError) return error;
  if (error instanceof ImageError) return new SampleDecodeError({}, error.message, { cause: error });
  return new SampleDecodeError({}, `it cannot be decoded (${codecReason(error)})`, { cause: error });
}

/** In front of what a decoder reports, libvips names the function that had called it. */
const CALLERS = /^((VipsJpeg|vipspng|webp|heif|\w+2vips|\w+load(_buffer)?|\w+save(_buffer)?): )+/;
/** What libvips or sharp writes itself, in plain words. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['Input buffer contains unsupported image format', 'it is of no kind of image that is known'],
  ['Input image exceeds pixel limit', 'it has too many pixels'],
  ['Unknown error', 'the decoder gives no reason'],
  ['libpng read error', 'its data are damaged or end too early'],
]);
/** Of libvips' own lines, no news of the image. */
const NO_NEWS = 'Warning treated as error due to failOn setting';
const HEADER = 'Input buffer has corrupt header: ';
const MOST_REASONS = 3;

/**
 * What is wrong with an image, on one line: libvips writes a line for each thing that it meets, often several times, with the name of
 * one of its functions in front.
 */
export function codecReason({ message }: Error): string {
  const isOfHeader = message.startsWith(HEADER);
  const lines = (isOfHeader ? message.slice(HEADER.length) : message).split('\n').map((line) => line.trim());
  const reasons = new Set(lines.filter((line) => line !== NO_NEWS).map((line) => line.replace(CALLERS, '')));
  reasons.delete('');
  const named = [...reasons].slice(0, MOST_REASONS).map((reason) => WORDS.get(reason) ?? reason);
  const all = named.length === 0 ? WORDS.get('Unknown error')! : named.join('; ');
  return isOfHeader ? `its header is damaged: ${all}` : all;
}
