import { EntryNameError } from '@shardtool/base';
import { whyUnsafe } from '@shardtool/format';
import { pack } from 'tar-stream';
import { write } from '../terminal/outcome.js';

/** Writes a tar of files to standard output. Times and owners are fixed, so equal input gives equal bytes. */
export class TarOutput {
  readonly #pack = pack();
  readonly #written = this.#writeOut();

  /** Appends a file, and waits if the reader is slow. Throws {@link EntryNameError} for a name that leads outside. */
  async write(name: string, bytes: Uint8Array, { shard, key }: { shard: string; key: string }): Promise<void> {
    const reason = whyUnsafe(name);
    if (reason !== null) {
      const message =
        `${shard}: sample ${JSON.stringify(key)} has a name that ${reason} (${JSON.stringify(name)}); ` +
        'pack it under another name.';
      throw new EntryNameError({ shard, key, path: name }, message);
    }
    const header = { name, size: bytes.length, mode: 0o644, mtime: new Date(0) };
    await new Promise<void>((resolve, reject) => {
      const entry = this.#pack.entry(header, (error) => (error ? reject(error) : resolve()));
      // A copy, because the buffer of the bytes is reused.
      entry.end(Buffer.from(bytes));
    });
  }

  async end(): Promise<void> {
    this.#pack.finalize();
    await this.#written;
  }

  async #writeOut(): Promise<void> {
    for await (const chunk of this.#pack) await write(chunk as Uint8Array);
  }
}
