/**
 * The paths of all shards in shared memory, so that no worker needs a copy. A path becomes a string when its
 * file is opened.
 */
export class ShardPaths {
  readonly buffers: ShardPathsBuffers;

  /** With the buffers of another thread. */
  constructor(buffers: ShardPathsBuffers) {
    this.buffers = buffers;
  }

  static of(paths: readonly string[]): ShardPaths {
    const starts = new Uint32Array(new SharedArrayBuffer((paths.length + 1) * 4));
    for (const [k, path] of paths.entries()) starts[k + 1] = starts[k]! + Buffer.byteLength(path);
    const bytes = Buffer.from(new SharedArrayBuffer(starts[paths.length]!));
    for (const [k, path] of paths.entries()) bytes.write(path, starts[k]!);
    return new ShardPaths({ starts, bytes });
  }

  at(shard: number): string {
    const { starts, bytes } = this.buffers;
    // TextDecoder does not take shared memory.
    return Buffer.from(bytes.slice(starts[shard]!, starts[shard + 1]!)).toString();
  }
}

/** Bytes of all paths in UTF-8, one after the other, and the offset of each. */
export interface ShardPathsBuffers {
  readonly starts: Uint32Array;
  readonly bytes: Uint8Array;
}
