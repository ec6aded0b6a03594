/** What is read, summed and written in about the time in which a thread starts. */
const SMALL_BYTES = 16 * 2 ** 20;
/** A file or sample more costs as much as so many bytes. */
const BYTES_PER_FILE = 16 * 2 ** 10;

/** Whether this thread is done with so many files and bytes, which pass as they are, before others would have helped. */
export function isSmallWork(work: { readonly files: number; readonly bytes: number }): boolean {
  return work.bytes + work.files * BYTES_PER_FILE <= SMALL_BYTES;
}
