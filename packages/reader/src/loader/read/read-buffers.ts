import { totalmem } from 'node:os';
import { OptionError, optionName, sentence } from '@shardtool/base';
import { sampleBytesOf } from '../../dataset/shards/shard-file.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { EpochPlan, Unit } from '../../order/batches.js';
import type { SamplesOf } from '../../selection/pass-samples.js';
import type { Selection } from '../../selection/selection.js';
import { placeBytes, SEGMENT_BYTES } from './arena.js';
import { leastBytes } from './least-bytes.js';
import { type PlannedStore, planLoad, selectedOf, selectedRows } from './load-shards.js';
import { STRETCH_BYTES } from './readers/stretches.js';

/** Memory for encoded samples, in bytes. */
export interface ReadBufferPlan {
  /** Number of blocks in memory at the same time. */
  readonly buffers: number;
  /** Memory of `buffers` blocks of samples of mean size, or of all samples if they are kept in memory. */
  readonly expectedBytes: number;
  /** Limit of the memory. */
  readonly limitBytes: number;
  /** Reserved address space for them. */
  readonly reservedBytes: number;
}

export interface ReadBufferOptions {
  readonly dataset: StoredDataset;
  readonly store: PlannedStore;
  readonly unit: Unit;
  /** Order of the epoch in which the run starts. */
  readonly selection: Selection;
  readonly upcoming: Iterable<EpochPlan>;
  readonly samplesOf: SamplesOf;
  /** Every sample that may occur in any epoch. */
  readonly all: Selection;
  /** Number of blocks in memory at the same time, and number of samples in them. */
  readonly held: { readonly buffers: number; readonly samples: number };
  /** Default: half of the machine's memory. */
  readonly limitBytes: number | undefined;
}

/** Margin for uneven sizes of samples. It is address space, which takes no memory until it is written. */
const SPARE = 1.5;
const SPARE_BYTES = 64 * 2 ** 20;
/** Number of shards whose indexes are read to estimate a selection. */
const LOOKED_INTO = 16;

/**
 * Throws {@link OptionError} with the smallest possible limit if the limit is too small. Reads few indexes, or none.
 */
export async function planReadBuffers(options: ReadBufferOptions): Promise<ReadBufferPlan> {
  const { held, unit } = options;
  const { buffers } = held;
  const limitBytes = options.limitBytes ?? Math.floor(totalmem() / 2);
  if (unit === 'sample') {
    const expectedBytes = await residentBytes(options);
    if (limitBytes < expectedBytes) throw tooSmall(options, limitBytes, expectedBytes);
    return { buffers, expectedBytes, limitBytes, reservedBytes: expectedBytes };
  }
  const { expectedBytes, reservedBytes } = await streamingBytes(options);
  if (limitBytes < expectedBytes) {
    const least = await leastBytes(options.upcoming, options.samplesOf, options.store);
    if (limitBytes < least) throw tooSmall(options, limitBytes, least);
  }
  const reserved = options.limitBytes === undefined ? reservedBytes : totalmem();
  return { buffers, expectedBytes, limitBytes, reservedBytes: Math.min(limitBytes, reserved) };
}

/** The plan of a loader that keeps `buffers` blocks in the page cache, and none in its memory. */
export function noReadBuffers(buffers: number): ReadBufferPlan {
  return { buffers, expectedBytes: 0, limitBytes: 0, reservedBytes: 0 };
}

/** Returns the bytes of all samples, and of the unused space at the ends of segments. */
async function residentBytes({ dataset, store, all }: ReadBufferOptions): Promise<number> {
  const { shards } = await planLoad(selectedRows(dataset.files.samples, all), store);
  let bytes = 0;
  for (const { stretches, crops } of shards.values()) {
    for (const stretch of [...stretches, ...(crops?.stretches ?? [])]) bytes += placeBytes(stretch.bytes);
  }
  return bytes + Math.floor(bytes / (SEGMENT_BYTES - STRETCH_BYTES)) * STRETCH_BYTES;
}

/**
 * Returns the memory of `buffers` blocks of samples of mean size, and that of the largest samples shard by shard with a
 * margin.
 */
async function streamingBytes(options: ReadBufferOptions): Promise<{ expectedBytes: number; reservedBytes: number }> {
  const { dataset } = options;
  const { samples, bytes } = await selectedSize(options);
  if (samples === 0) return { expectedBytes: 0, reservedBytes: 0 };
  const held = Math.min(options.held.samples, samples);
  const mean = bytes / samples;
  const ratio = mean / dataset.meanSampleBytes;
  const means = dataset.shards
    .filter((shard) => shard.samples > 0)
    .map((shard) => sampleBytesOf(shard) / shard.samples);
  const heaviest = means.reduce((most, shardMean) => Math.max(most, shardMean), 0) * ratio;
  return {
    expectedBytes: Math.ceil(held * mean),
    reservedBytes: Math.ceil(held * heaviest * SPARE) + SPARE_BYTES,
  };
}

/** Returns the samples of the selection and their bytes, estimated from some shards if samples are excluded. */
async function selectedSize({
  dataset,
  store,
  selection,
}: ReadBufferOptions): Promise<{ samples: number; bytes: number }> {
  let samples = 0;
  let isAll = true;
  const chosen: number[] = [];
  for (let shard = 0; shard < selection.counts.length; shard++) {
    samples += selection.counts[shard]!;
    if (selection.rows(shard) !== null) isAll = false;
    if (selection.counts[shard]! > 0) chosen.push(shard);
  }
  // The samples that an overlay keeps can be larger than the mean.
  if (isAll && dataset.shards.every(({ sampleBytes }) => sampleBytes === undefined)) {
    return { samples, bytes: dataset.bytes };
  }
  const every = Math.ceil(chosen.length / LOOKED_INTO);
  const looked = chosen.filter((_, i) => i % every === 0);
  const parts = looked.map((shard) => selectedOf(selection, shard, dataset.shards[shard]!.samples));
  const { bytes } = await planLoad(parts, store);
  const rows = looked.reduce((sum, shard) => sum + selection.counts[shard]!, 0);
  return { samples, bytes: (bytes / Math.max(1, rows)) * samples };
}

function tooSmall({ limitBytes, unit }: ReadBufferOptions, limit: number, least: number): OptionError {
  const given =
    limitBytes === undefined ? "half of this machine's memory is" : sentence`${optionName('readBufferBytes')} is`;
  const remedy =
    unit === 'sample'
      ? sentence`set ${optionName('shuffleUnit')} to 'chunk'`
      : sentence`choose fewer streams or a smaller ${optionName('shuffleBufferSize')}`;
  return new OptionError(
    {},
    sentence`The samples that are in memory at the same time take ${least} bytes, but ${given} ${limit}: set ${optionName('readBufferBytes')} to at least ${least}, or ${remedy}.`,
  );
}
