import { fstatSync, ftruncateSync } from 'node:fs';
import { constants } from 'node:os';
import { FileError, nativeCalls } from '@shardtool/base';
import type { KernelMemory } from '../../kernels/kernel-memory.js';

/**
 * WebAssembly memory begins and ends at multiples of its page size, which is a multiple of the page size of every
 * machine.
 */
const WASM_PAGE_BYTES = 65_536;
/** mmap(2): PROT_READ | PROT_WRITE and MAP_SHARED | MAP_FIXED, the same numbers on Linux and macOS. */
const READ_WRITE = 1 | 2;
const SHARED_AT_THIS_PLACE = 1 | 16;

/**
 * Maps an open file over the first `bytes` bytes of the memory, in whole pages. From then on, kernels write directly
 * into the file's memory. mmap with MAP_FIXED replaces the pages inside the range that V8 has reserved, and V8 later
 * frees the range as a whole. The last page may cover memory after the slots, which is harmless. Throws {@link
 * FileError}.
 */
export async function layOverFile(memory: KernelMemory, file: number, bytes: number): Promise<void> {
  const length = Math.min(Math.ceil(bytes / WASM_PAGE_BYTES) * WASM_PAGE_BYTES, memory.buffer.byteLength);
  if (length === 0) return;
  try {
    if (fstatSync(file).size < length) ftruncateSync(file, length);
  } catch (cause) {
    throw failed(file, length, (cause as Error).message, cause);
  }
  const koffi = nativeCalls<typeof import('koffi').default>();
  const library = koffi.load(null);
  const mmap = library.func('mmap', 'intptr_t', ['void*', 'size_t', 'int', 'int', 'int', 'int64_t']);
  const place = koffi.address(new Uint8Array(memory.buffer, 0, 1));
  const mapped = BigInt(mmap(place, length, READ_WRITE, SHARED_AT_THIS_PLACE, file, 0));
  if (mapped === BigInt(place)) return;
  const number = koffi.errno();
  const name = Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? `error ${number}`;
  throw failed(file, length, name, undefined);
}

function failed(file: number, bytes: number, why: string, cause: unknown): FileError {
  return new FileError(
    {},
    `The batch slots cannot take ${bytes} bytes of the memory of file descriptor ${file} (${why}): it must be open for ` +
      'reading and writing, and the machine needs enough free memory.',
    { cause },
  );
}
