import type { EpochOrder } from '../../order/epoch-order.js';
import { horizonOf, type Readers } from '../../order/next-use.js';
import type { LoaderOrder, SourceOrder } from '../setup/order.js';
import type { CutDataset } from './pieces.js';

/**
 * How the shards of each dataset are cut for a cache of so many bytes, and when the ranks of this machine need them.
 * `bytes[k]` is how long shard k is.
 */
export function cutDatasets(
  order: Pick<LoaderOrder, 'sources' | 'unit' | 'isScattered' | 'rank' | 'worldSize'>,
  bytes: ArrayLike<number>,
  cacheBytes: number,
): CutDataset[] {
  const { sources, rank, worldSize } = order;
  const local = localRanks(rank, worldSize, process.env);
  const passBytes = sources.map(({ firstShard }, d) => {
    const end = sources[d + 1]?.firstShard ?? bytes.length;
    let sum = 0;
    for (let shard = firstShard; shard < end; shard++) sum += bytes[shard]!;
    return sum;
  });
  const epochBytes = sources.reduce((sum, { passesAnEpoch }, d) => sum + passesAnEpoch * passBytes[d]!, 0);
  const epochs = horizonOf(cacheBytes, (epochBytes * local.count) / worldSize);
  const isLocal = (stream: number): boolean => {
    const owner = stream % worldSize;
    return owner >= local.first && owner < local.first + local.count;
  };
  return sources.map((source) => ({
    ...source,
    // What is kept in memory as a whole is read once, and for the next run; of a scattered order every piece is wanted all the time.
    readers: order.unit === 'sample' || order.isScattered ? null : readersOf(source, isLocal, epochs),
  }));
}

/** Passes of a dataset that comes often in an epoch lie close together: more of them are looked at, within reason. */
const MOST_PASSES = 64;

function readersOf(source: SourceOrder, isLocal: Readers['isLocal'], epochs: number): Readers {
  const horizon = Math.min(MOST_PASSES, Math.max(1, Math.ceil(epochs * source.passesAnEpoch)));
  const orders = new Map<number, EpochOrder>();
  return {
    horizon,
    isLocal,
    orderOf(pass: number) {
      let known = orders.get(pass);
      if (known === undefined) {
        known = source.orderOf(pass);
        orders.set(pass, known);
        const oldest = Math.min(...orders.keys());
        if (orders.size > horizon + 2) orders.delete(oldest);
      }
      return known;
    },
  };
}

/**
 * The ranks whose processes run on this machine: LOCAL_RANK and LOCAL_WORLD_SIZE (torchrun sets them) say how many, and
 * they follow each other. Without them each process looks at what it needs itself.
 */
export function localRanks(
  rank: number,
  worldSize: number,
  env: Readonly<Record<string, string | undefined>>,
): { readonly first: number; readonly count: number } {
  const place = Number(env.LOCAL_RANK ?? Number.NaN);
  const count = Number(env.LOCAL_WORLD_SIZE ?? Number.NaN);
  const first = rank - place;
  const isRight = place >= 0 && place < count && first >= 0 && first + count <= worldSize;
  return isRight ? { first, count } : { first: rank, count: 1 };
}
