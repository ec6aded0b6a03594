import { ImageError, SampleDecodeError } from '@shardtool/base';

/** Converts an error of a decoder or of a header parser to a SampleDecodeError. */
export function asDecodeError(error: Error): Error {
  if (error instanceof SampleDecodeError) return error;
  if (error instanceof ImageError) return new SampleDecodeError({}, error.message, { cause: error });
  return new SampleDecodeError({}, `it cannot be decoded (${codecReason(error)})`, { cause: error });
}

/** The names of functions that libvips puts before the messages of decoders. */
const CALLERS = /^((VipsJpeg|vipspng|webp|heif|\w+2vips|\w+load(_buffer)?|\w+save(_buffer)?): )+/;
/** Plain replacements for messages of libvips and sharp. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['Input buffer contains unsupported image format', 'it is not an image, or its format is not supported'],
  ['Input image exceeds pixel limit', 'it has too many pixels'],
  ['Unknown error', 'the decoder does not give a reason'],
  ['libpng read error', 'its data are damaged or truncated'],
]);
/** A line of libvips that says nothing about the image. */
const NOISE = 'Warning treated as error due to failOn setting';
const HEADER = 'Input buffer has corrupt header: ';
const MAX_REASONS = 3;

/**
 * The reason why an image cannot be decoded, on one line. libvips writes one line per problem, often several times, each prefixed
 * with the name of one of its functions.
 */
export function codecReason({ message }: Error): string {
  const isOfHeader = message.startsWith(HEADER);
  const lines = (isOfHeader ? message.slice(HEADER.length) : message).split('\n').map((line) => line.trim());
  const reasons = new Set(lines.filter((line) => line !== NOISE).map((line) => line.replace(CALLERS, '')));
  reasons.delete('');
  const named = [...reasons].slice(0, MAX_REASONS).map((reason) => WORDS.get(reason) ?? reason);
  const all = named.length === 0 ? WORDS.get('Unknown error')! : named.join('; ');
  return isOfHeader ? `its header is damaged: ${all}` : all;
}
