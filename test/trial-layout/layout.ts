import { inflateSync } from 'node:zlib';
import { type LayoutName, PieceSource, type SamplePosition, type ShardLayout, type Source } from '@shardtool/format';

/** One line of the directory at the end of a trial shard. */
interface Entry {
  readonly key: string;
  readonly cls: number;
  readonly note: string | null;
  /** Offset and length of the deflated image, and its inflated length. */
  readonly at: number;
  readonly stored: number;
  readonly bytes: number;
}

/** A shard of the trial layout: deflated images, a JSON directory of them, and its length in eight digits. */
class TrialSource extends PieceSource {
  readonly entries: readonly Entry[];

  constructor(source: Source, entries: readonly Entry[]) {
    const starts = new Float64Array(entries.length + 1);
    for (const [i, { bytes }] of entries.entries()) starts[i + 1] = starts[i]! + bytes;
    super(source, {
      starts,
      load: async (i) => {
        const stored = new Uint8Array(entries[i]!.stored);
        await source.readAt(entries[i]!.at, stored);
        return inflateSync(stored);
      },
    });
    this.entries = entries;
  }
}

async function expand(source: Source): Promise<Source> {
  const tail = Buffer.alloc(8);
  await source.readAt(source.size - 8, tail);
  const directory = Buffer.alloc(Number(tail.toString()));
  await source.readAt(source.size - 8 - directory.length, directory);
  return new TrialSource(source, JSON.parse(directory.toString()));
}

async function* samples(source: Source): AsyncGenerator<readonly SamplePosition[]> {
  let offset = 0;
  for (const { key, cls, note, bytes } of (source as TrialSource).entries) {
    const labels = new Map([['note', note]]);
    yield [{ key, offset, bytes, fields: [{ name: 'jpg', offset, bytes }], cls, labels }];
    offset += bytes;
  }
}

/** Read-only: it has neither writer nor salvage. */
export const trial: ShardLayout = { name: 'trial' as LayoutName, extension: '.trial', samples, expand };
