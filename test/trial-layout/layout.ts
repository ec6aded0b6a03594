import { inflateSync } from 'node:zlib';
import { type LayoutName, PieceSource, type SamplePosition, type ShardLayout, type Source } from '@shardtool/format';

/** One line of the directory that a trial shard ends with. */
interface Entry {
  readonly key: string;
  readonly cls: number;
  readonly note: string | null;
  /** Where the deflated image lies, and how long it is when inflated. */
  readonly at: number;
  readonly stored: number;
  readonly bytes: number;
}

/** A shard as the trial has it: deflated images, a JSON directory of them, and the length of that in eight digits. */
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

/** Is only read: it has neither writer nor salvage. */
export const trial: ShardLayout = { name: 'trial' as LayoutName, extension: '.trial', samples, expand };
