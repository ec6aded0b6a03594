import { UnsupportedShardError } from '@shardtool/base';

export type Hdf5Library = typeof import('h5wasm');

/**
 * Loads h5wasm. The package has 15 MB and few users need it, so they install it themselves. Throws {@link
 * UnsupportedShardError} if it is missing.
 */
export async function loadHdf5(shard: string): Promise<Hdf5Library> {
  try {
    // The build for browsers has its own file system: a link in a file cannot lead to another file of this machine.
    const library = await import('h5wasm');
    const { activate_throwing_error_handler: throwErrors } = await library.ready;
    // By default it prints errors.
    throwErrors();
    return library;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const message = `${shard}: reading HDF5 needs the package h5wasm, which is not installed. Install it next to shardtool: npm install h5wasm`;
    throw new UnsupportedShardError({ shard }, message, { cause });
  }
}

/** The parts of Emscripten's file system that are used here: a file whose bytes come from elsewhere. */
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

/** WASI error numbers: invalid argument, and input/output error. */
const EINVAL = 28;
const EIO = 29;
const FROM_POSITION = 1;
const FROM_END = 2;

let files = 0;

/** Puts a file of `size` bytes into the library's file system, which contains no other files. */
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
