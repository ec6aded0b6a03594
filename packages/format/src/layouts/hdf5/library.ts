import { UnsupportedShardError } from '@shardtool/base';

export type Hdf5Library = typeof import('h5wasm');

/** The package is 15 MB and few need it, so people install it themselves. Throws {@link UnsupportedShardError} where it is not there. */
export async function loadHdf5(shard: string): Promise<Hdf5Library> {
  try {
    // The build for browsers has a file system of its own: no link in a file leads to another file of this machine.
    const library = await import('h5wasm');
    const { activate_throwing_error_handler: throwErrors } = await library.ready;
    // It prints them otherwise.
    throwErrors();
    return library;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const message = `${shard}: HDF5 is read by the package h5wasm, which is not there; install it beside shardtool: npm install h5wasm`;
    throw new UnsupportedShardError({ shard }, message, { cause });
  }
}

/** What of Emscripten's file system is used here: a file whose bytes come from elsewhere. */
interface FileNode {
  stream_ops: object;
}
interface Stream {
  readonly position: number;
}
interface FileSystem {
  createFile(folder: string, name: string, properties: object, canRead: boolean, canWrite: boolean): FileNode;
  unlink(path: string): void;
  readonly ErrnoError: new (errno: number) => Error;
}

/** Numbers of WASI: invalid argument, and input or output. */
const EINVAL = 28;
const EIO = 29;
const FROM_POSITION = 1;
const FROM_END = 2;

let files = 0;

/** Puts a file of `size` bytes into the library's file system, which holds nothing but what is put there. */
export function putFile(
  library: Hdf5Library,
  size: number,
  readNow: (position: number, target: Uint8Array) => number,
): { readonly path: string; remove(): void } {
  const system = library.FS as unknown as FileSystem;
  const name = `${files++}.h5`;
  const node = system.createFile('/', name, {}, true, false);
  Object.defineProperty(node, 'usedBytes', { get: () => size });
  node.stream_ops = {
    ...node.stream_ops,
    read(_: Stream, memory: Uint8Array, at: number, length: number, position: number): number {
      const bytes = Math.min(length, size - position);
      try {
        return bytes <= 0 ? 0 : readNow(position, new Uint8Array(memory.buffer, memory.byteOffset + at, bytes));
      } catch {
        throw new system.ErrnoError(EIO);
      }
    },
    llseek(stream: Stream, offset: number, whence: number): number {
      const base = whence === FROM_POSITION ? stream.position : whence === FROM_END ? size : 0;
      if (base + offset < 0) throw new system.ErrnoError(EINVAL);
      return base + offset;
    },
  };
  return { path: `/${name}`, remove: () => system.unlink(`/${name}`) };
}
