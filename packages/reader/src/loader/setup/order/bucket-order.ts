import { createHash } from 'node:crypto';
import { OptionError, optionName, sentence } from '@shardtool/base';
import { z } from 'zod';
import { countSizes, type SizedSamples } from '../../../buckets/count-sizes.js';
import { keepSizes, keptSizes } from '../../../buckets/kept-sizes.js';
import type { BucketCrop, Buckets } from '../../../buckets/options.js';
import { type BucketPlan, planBuckets } from '../../../buckets/plan.js';
import type { Size } from '../../../codec/codec.js';
import type { StoredDataset } from '../../../dataset/stored-dataset.js';
import { StateError } from '../../../order/state.js';
import { shardRow } from '../../../selection/pass-samples.js';
import type { CheckedOptions } from '../../options.js';
import type { Place } from '../../progress.js';
import type { LoaderOrder } from './order.js';

const whole = z.number().int().nonnegative();
const schema = z.object({
  /** Hash of the sizes. */
  sizes: z.string(),
  /** Batches of the epoch that were delivered. */
  step: whole,
  /** For each size, the number of samples before the position that wait for their batch. */
  waiting: z.array(whole),
});

/** The part of a state about buckets. */
export type BucketState = Readonly<z.output<typeof schema>>;

/** The order of a loader with batches of several sizes. */
export interface LoaderBuckets {
  readonly order: LoaderOrder;
  readonly sized: SizedSamples;
  readonly crop: BucketCrop;
  plan(place: Place): BucketPlan;
}

/** Number of positions, over all ranks, that are processed at a time. */
const STRETCH = 1024;

/** Finds the size of every sample, or uses cached sizes, and makes batches of one size from an order. */
export async function setUpBuckets(
  dataset: StoredDataset,
  base: LoaderOrder,
  buckets: Buckets,
  { turns, lastBatch, state }: { turns: boolean } & Pick<CheckedOptions, 'lastBatch' | 'state'>,
): Promise<LoaderBuckets> {
  // For files without checksums, the identity does not change when a file is replaced by another one of the same
  // length.
  const versions = dataset.shards.flatMap(({ crc32, version }) =>
    crc32 === undefined && version !== undefined ? version : [],
  );
  const key = { identities: [dataset.identity, ...base.identities, ...versions], buckets, turns };
  let sized = await keptSizes(dataset, key);
  if (sized === null) {
    sized = await countSizes(dataset, base.all, buckets, turns);
    await keepSizes(dataset, key, sized);
  }
  return { ...bucketOrder(dataset, base, sized, { lastBatch, state }), sized, crop: buckets.crop };
}

function bucketOrder(
  dataset: StoredDataset,
  base: LoaderOrder,
  { sizes, perSize, of }: SizedSamples,
  options: Pick<CheckedOptions, 'lastBatch' | 'state'>,
): Pick<LoaderBuckets, 'order' | 'plan'> {
  const { rank, worldSize, globalBatch } = base;
  const lastBatch = options.lastBatch ?? (worldSize === 1 ? 'partial' : 'pad');
  const all = { rank: 0, worldSize: 1, globalBatch: STRETCH, lastBatch: 'partial', ownOnly: true } as const;
  const digest = digestOf(sizes);
  const sizeOf = sizeFinder(dataset, base, of);
  const plan = (place: Place): BucketPlan =>
    planBuckets({
      own: base.part(place, { rank, worldSize, globalBatch, lastBatch: 'partial', ownOnly: true }),
      all: (position) => base.part({ epoch: place.epoch, position }, all),
      sizeOf,
      sizes: sizes.length,
      rank,
      worldSize,
      globalBatch,
      lastBatch,
      place: place.buckets && { ...place.buckets, position: place.position },
      perSize: base.isOnce ? perSize : null,
      notThere() {
        throw new StateError(
          {},
          'This is not a state of a loader: buckets.waiting is larger than the number of samples.',
        );
      },
    });
  const begin = { ...base.begin, ...takeUpBuckets(options.state, base.begin, { digest, sizes: sizes.length }) };
  const { withWeights: _, ...kept } = base;
  const order: LoaderOrder = {
    ...kept,
    begin,
    isOver: begin.position > 0 && plan(begin).isEmpty,
    plan,
    stateAt: (place) => ({
      ...base.stateAt(place),
      lastBatch,
      buckets: {
        sizes: digest,
        step: place.buckets?.step ?? 0,
        waiting: [...(place.buckets?.waiting ?? sizes.map(() => 0))],
      },
    }),
    ...(base.withWeights && { withWeights: refuseWeights }),
  };
  return { order, plan };
}

function refuseWeights(): never {
  throw new OptionError(
    {},
    sentence`With ${optionName('aspectBuckets')}, the weights of a mixture cannot change within a run, because samples chosen by the old weights are still waiting: start a new run with the new weights, or remove ${optionName('aspectBuckets')}.`,
  );
}

function digestOf(sizes: readonly Size[]): string {
  return createHash('sha256')
    .update(JSON.stringify(sizes.map(({ width, height }) => [width, height])))
    .digest('hex')
    .slice(0, 16);
}

/** Returns the index of a sample's size, by its number in a pass. */
function sizeFinder({ files }: StoredDataset, { samplesOf }: LoaderOrder, of: Uint8Array) {
  return (source: number, pass: number, number: number): number => {
    const samples = samplesOf(source, pass);
    if (samples.isWhole) return of[files.firstSample[samples.firstShard]! + number]!;
    const { shard, row } = shardRow(samples, number);
    return of[files.firstSample[shard]! + row]!;
  };
}

/** Returns the samples that wait according to a state. Throws {@link StateError} if sizes differ. */
function takeUpBuckets(
  state: unknown,
  { position }: Place,
  { digest, sizes }: { digest: string; sizes: number },
): Pick<Place, 'buckets'> {
  if (state === undefined) return {};
  const { buckets } = (state ?? {}) as { buckets?: unknown };
  if (buckets === undefined) {
    throw new StateError(
      {},
      sentence`The state was saved without ${optionName('aspectBuckets')}, which changes the order: remove ${optionName('aspectBuckets')}, or start without a state.`,
    );
  }
  const result = schema.safeParse(buckets);
  if (!result.success || (result.data.sizes === digest && result.data.waiting.length !== sizes))
    throw new StateError({}, 'This is not a state of a loader (buckets).');
  if (result.data.sizes !== digest) {
    throw new StateError(
      {},
      sentence`The state was saved with other sizes of ${optionName('aspectBuckets')}, which would change the batches: use the earlier ${optionName('aspectBuckets')}, or start without a state.`,
    );
  }
  if (position === 0) return {};
  return { buckets: { step: result.data.step, waiting: result.data.waiting } };
}

/** Throws {@link StateError} if a state has buckets: a loader without buckets cannot resume from it. */
export function refuseBucketState(state: unknown): void {
  if ((state as { buckets?: unknown } | null | undefined)?.buckets === undefined) return;
  throw new StateError(
    {},
    sentence`The state was saved with ${optionName('aspectBuckets')}, which changes the order: set the same ${optionName('aspectBuckets')}, or start without a state.`,
  );
}
