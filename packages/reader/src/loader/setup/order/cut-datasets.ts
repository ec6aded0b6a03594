import type { EpochOrder } from '../../../order/epoch-order.js';
import { horizonOf, type Readers } from '../../../order/next-use.js';
import type { CutDataset } from '../../read/pieces.js';
import type { LoaderOrder } from './order.js';
import type { SourcePasses } from './order-sources.js';

/**
 * Divides the shards of each dataset into pieces for a cache of `cacheBytes`, and determines when the ranks of this
 * machine need them. `bytes[k]` is the length of shard k.
 */
export function cutDatasets(
  order: Pick<LoaderOrder, 'passes' | 'unit' | 'isScattered' | 'rank' | 'worldSize' | 'streamRanks'>,
  bytes: ArrayLike<number>,
  cacheBytes: number,
): CutDataset[] {
  const { passes, rank, worldSize } = order;
  const local = localRanks(rank, worldSize, process.env);
  const passBytes = passes.map(({ firstShard }, d) => {
    const end = passes[d + 1]?.firstShard ?? bytes.length;
    let sum = 0;
    for (let shard = firstShard; shard < end; shard++) sum += bytes[shard]!;
    return sum;
  });
  const epochBytes = passes.reduce((sum, { passesAnEpoch }, d) => sum + passesAnEpoch * passBytes[d]!, 0);
  const share = order.streamRanks === 1 ? 1 : local.count / worldSize;
  const epochs = horizonOf(cacheBytes, epochBytes * share);
  const isLocal = (stream: number): boolean => {
    if (order.streamRanks === 1) return true;
    const owner = stream % worldSize;
    return owner >= local.first && owner < local.first + local.count;
  };
  return passes.map((source) => ({
    ...source,
    // Data that stays in memory as a whole is read only once, and then by the next run. In a scattered order, every
    // piece is always needed soon.
    readers: order.unit === 'sample' || order.isScattered ? null : readersOf(source, isLocal, epochs),
  }));
}

/**
 * If a dataset is repeated often in an epoch, its passes are short. Then more passes are considered, up to this number.
 */
const MOST_PASSES = 64;

function readersOf(source: SourcePasses, isLocal: Readers['isLocal'], epochs: number): Readers {
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
 * Returns the ranks whose processes run on this machine. LOCAL_RANK and LOCAL_WORLD_SIZE, which torchrun sets,
 * determine their number; they are consecutive. Without these variables, each process only considers its own needs.
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
