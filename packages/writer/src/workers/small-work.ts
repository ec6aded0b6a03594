/** Bytes that one thread reads, checksums and writes in about the time that another thread takes to start. */
const SMALL_BYTES = 16 * 2 ** 20;
/** Cost of each further file or sample, expressed in bytes. */
const BYTES_PER_FILE = 16 * 2 ** 10;

/**
 * True if this thread would finish the files and bytes, stored unchanged, before other threads have started. With
 * `factor`, work of this multiple counts as small too.
 */
export function isSmallWork(work: { readonly files: number; readonly bytes: number }, factor = 1): boolean {
  return work.bytes + work.files * BYTES_PER_FILE <= SMALL_BYTES * factor;
}
