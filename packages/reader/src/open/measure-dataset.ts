/** Measures every image of a dataset in the workers of a loader, and stores the measures in a sidecar of each shard. */
import { lastAtMost, totalOf } from '@shardtool/base';
import {
  contentOf,
  type InspectionColumn,
  placeSidecar,
  removeAbandonedSidecars,
  writeInspection,
} from '@shardtool/format';
import type { ShardFile } from '../dataset/shards/shard-file.js';
import { INSPECTED_SIDE, NOT_WHOLE, takeMeasured } from '../inspect/measure.js';
import { columnsOf, Measures, measuresOf } from '../inspect/measures.js';
import { Dataset } from './dataset.js';

export interface MeasureOptions {
  /** Number of decoding threads. Default: one per core. */
  readonly workers?: number | undefined;
  /** Measure again even if stored results exist. Default: false. */
  readonly overwrite?: boolean | undefined;
  /** Called repeatedly while the call runs. */
  readonly onProgress?: ((progress: InspectProgress) => void) | undefined;
}

/** Number of images that were measured, and of those that this call measures. */
export interface InspectProgress {
  readonly images: number;
  readonly totalImages: number;
}

/** The measures of a dataset, and how many of them were already stored. */
export interface MeasuredDataset {
  readonly measures: Measures;
  /** Number of samples whose measures were already stored. */
  readonly known: number;
  /** False if some shards cannot have sidecars, so that their measures are not stored. */
  readonly isKept: boolean;
}

const BATCH = 64;
const PIXELS = INSPECTED_SIDE ** 2;
const ROW_BYTES = PIXELS * 3;
/** The reason that `Checker.check` gives. A loader accepts such an image if all pixels that it needs are present. */
const WITHOUT_END = 'this JPEG cannot be decoded (premature end: it has no end marker)';

/**
 * Measures the images of a dataset, upright and resized to 256x256 as by a loader. A shard is stored as soon as it is
 * complete, so an interrupted inspection resumes there. Throws FileError if a shard cannot be read or the measures
 * cannot be written.
 */
export async function measureDataset(dataset: Dataset, options: MeasureOptions): Promise<MeasuredDataset> {
  const { shards, files } = dataset;
  const measures = new Measures(dataset.size);
  const missing: number[] = [];
  for (const [number, shard] of shards.entries()) {
    const kept = options.overwrite ? null : await keptMeasures(shard);
    if (kept === null) missing.push(number);
    else measures.putShard(files.firstSample[number]!, kept);
  }
  const left = missing.map((number) => shards[number]!);
  removeAbandonedSidecars(left.map(({ path }) => path));
  if (left.some(({ samples }) => samples > 0)) {
    for await (const { shard, measured } of measureShards(dataset, left, options)) {
      await addAspect(measured, left[shard]!);
      measures.putShard(files.firstSample[missing[shard]!]!, measured);
      await keepColumns(left[shard]!, columnsOf(measured), [...measured.totals]);
    }
  }
  const known = dataset.size - totalOf(left, ({ samples }) => samples);
  return { measures, known, isKept: shards.every(({ loadInspection }) => loadInspection !== undefined) };
}

async function keptMeasures({ samples, loadInspection }: ShardFile): Promise<Measures | null> {
  const found = (await loadInspection?.()) ?? null;
  return found === null ? null : measuresOf(samples, found.columns, found.totals);
}

interface MeasuredShard {
  readonly shard: number;
  readonly measured: Measures;
}

/** Yields each shard as soon as its last image is measured. */
async function* measureShards(
  dataset: Dataset,
  shards: readonly ShardFile[],
  { workers, onProgress }: MeasureOptions,
): AsyncGenerator<MeasuredShard> {
  const { location, format, identity, classes, fields } = dataset;
  const part = new Dataset({ location, format, identity, classes, classSamples: [], fields, shards });
  const module = new URL('./measure-step.js', import.meta.url).href;
  const loader = part.loader({
    transform: [{ name: 'resize', size: [INSPECTED_SIDE, INSPECTED_SIDE] }],
    batchSize: BATCH,
    reuse: true,
    shuffle: false,
    rank: 0,
    worldSize: 1,
    lastBatch: 'partial',
    onBad: 'skip',
    applyExifOrientation: true,
    fields: [],
    customSteps: { fields: { module, export: 'fields' }, pixels: { module, export: 'pixels' } },
    ...(workers !== undefined && { workers }),
  });
  const { firstSample } = part.files;
  const open = new Map<number, OpenShard>();
  const opened = (shard: number) => {
    const found = open.get(shard) ?? {
      measured: new Measures(shards[shard]!.samples),
      bad: new Map(),
      left: shards[shard]!.samples,
    };
    open.set(shard, found);
    return found;
  };
  let done = 0;
  try {
    for (const [shard, { samples }] of shards.entries()) if (samples === 0) yield { shard, measured: new Measures(0) };
    for await (const batch of loader) {
      const whole: number[] = [];
      for (let i = 0; i < batch.size; i++) {
        const number = batch.indices[i]!;
        const shard = lastAtMost(firstSample, number, firstSample.length - 1);
        const { measured, bad } = opened(shard);
        const row = number - firstSample[shard]!;
        if (batch.valid[i] === 1) {
          const values = takeMeasured(batch.images.subarray(i * ROW_BYTES, (i + 1) * ROW_BYTES));
          if (values.warnings === NOT_WHOLE) measured.errors.set(row, WITHOUT_END);
          else measured.put(row, values, PIXELS);
        } else bad.set(row, batch.keys[i]!);
        if (--opened(shard).left === 0) whole.push(shard);
      }
      done += batch.size;
      onProgress?.({ images: done, totalImages: part.size });
      for (const shard of whole) {
        const { measured } = open.get(shard)!;
        nameReasons(open.get(shard)!, shards[shard]!.name, loader.report().badSamples);
        open.delete(shard);
        yield { shard, measured };
      }
    }
  } finally {
    await loader.close();
    await part.close();
  }
}

/** A shard that is partly measured. */
interface OpenShard {
  readonly measured: Measures;
  /** Keys of the samples that could not be decoded, by row. */
  readonly bad: Map<number, string>;
  left: number;
}

/** Takes the reasons of bad rows from the loader's report. */
function nameReasons(
  { measured: { errors }, bad: rows }: OpenShard,
  shardName: string,
  bad: readonly { readonly shard: string; readonly key: string; readonly reason: string }[],
): void {
  if (rows.size === 0) return;
  const reasons = new Map(bad.filter(({ shard }) => shard === shardName).map(({ key, reason }) => [key, reason]));
  for (const [row, key] of rows) errors.set(row, reasons.get(key) ?? 'it cannot be used');
}

async function addAspect({ aspect, isMeasured }: Measures, shard: ShardFile): Promise<void> {
  const { width, height } = await shard.loadParts(['width', 'height']);
  for (let row = 0; row < aspect.length; row++) {
    const [short, long] = [Math.min(width[row]!, height[row]!), Math.max(width[row]!, height[row]!)];
    aspect[row] = isMeasured[row] === 1 && short > 0 ? long / short : 0;
  }
}

/** Writes the inspection sidecar of a shard, replacing an existing one. Does nothing if the shard cannot have one. Throws FileError. */
export async function keepColumns(
  { path, storage, loadInspection, loadParts }: ShardFile,
  columns: ReadonlyMap<string, InspectionColumn>,
  totals: readonly number[],
): Promise<void> {
  if (loadInspection === undefined) return;
  const place = await placeSidecar('inspection', path, false, storage);
  await writeInspection(place, { content: contentOf(await loadParts(['fields'])), totals, columns });
}
