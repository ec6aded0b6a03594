import { ImageError, SampleDecodeError } from '@shardtool/base';

/** What a decoder or a header's reader threw, as an error of the image. */
export function asDecodeError(error: Error): Error {
  if (error instanceof SampleDecodeError) return error;
  if (error instanceof ImageError) return new SampleDecodeError({}, error.message, { cause: error });
  return new SampleDecodeError({}, `it cannot be decoded (${error.message.split('\n')[0]})`, { cause: error });
}
