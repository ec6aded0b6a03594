import { inPython, OptionError } from '@shardtool/base';
import { type FormatOptions, formatOf } from '../codec/pixel-format.js';
import { numberTypesOf } from '../dataset/fields/field-names.js';
import { ImageFinder } from '../dataset/image-places.js';
import type { Batch } from '../loader/deliver/batch/batch.js';
import { type LoaderReport, spelledBadSample } from '../loader/deliver/statistics.js';
import { Loader } from '../loader/loader.js';
import type { LoaderOptions } from '../loader/options.js';
import { Progress } from '../loader/progress.js';
import { FreeSlots } from '../loader/ring/free-slots.js';
import { fieldsWithoutImages } from '../loader/setup/fields-output.js';
import { hasImages } from '../loader/setup/image-choice.js';
import type { ScheduledTransform } from '../loader/setup/transform-schedule.js';
import type { Workers } from '../loader/work/start-workers.js';
import type { Dataset } from '../open/dataset.js';
import { type OpenOptions, openDataset, openMixture } from '../open/open.js';
import type { MixturePart } from '../open/open-mixture.js';
import { type DecodedSample, SampleDecoder } from '../open/sample-decoder.js';
import { resolveRanks } from '../order/ranks.js';
import { compileTransform, type TransformInput } from '../transform/transform.js';
import { type Answer, errorHeader } from './answer.js';
import { bytesOf, frameBatch, type Shown } from './batch-frame.js';
import type { Request, RequestOf } from './requests.js';
import { batchOfDecoded, batchOfStored } from './samples-batch.js';

/** One dataset, one loader and at most one iteration for the process at the other end of the pipe. */
export class Session {
  readonly #slotFile: number;
  #dataset: Dataset | null = null;
  #loader: Loader | null = null;
  #samples: SampleDecoder | null = null;
  #images: ImageFinder | null = null;
  #shown: Shown = { withKeys: false, dtype: 'uint8', layout: 'nhwc' };
  #batches: AsyncIterator<Batch> | null = null;
  /** Batches that the other side uses, by number. */
  readonly #held = new Map<number, Batch>();
  readonly #slots = new FreeSlots();
  #given = 0;
  #workers: Workers | null;

  /** `workers`: decode workers that have been started for the first loader. */
  constructor(slotFile: number, workers: Workers | null) {
    this.#slotFile = slotFile;
    this.#workers = workers;
  }

  /** Returns null if the request has no answer. Errors are answers, too. */
  async answer(request: Request): Promise<Answer | null> {
    try {
      return await this.#do(request);
    } catch (error) {
      return { header: errorHeader(error) };
    }
  }

  async #do(request: Request): Promise<Answer | null> {
    switch (request.kind) {
      case 'open':
        return this.#open(request);
      case 'openSamples':
        return this.#openSamples(request);
      case 'samples':
        return this.#someSamples(request);
      case 'imagePlaces':
        return this.#findImages(request);
      case 'keys':
        return { header: { kind: 'keys', keys: await this.#finder.keys(request.wanted) } };
      case 'indexOf': {
        const index = await this.#place.indexOf(request.key);
        return { header: { kind: 'index', index, hint: index < 0 ? await this.#place.hintOnKey(request.key) : '' } };
      }
      case 'labels':
        return { header: { kind: 'labels' }, parts: await labelsOf(this.#place) };
      case 'info':
        this.#setEpoch(request);
        return { header: { kind: 'info', info: await this.#opened.info() } };
      case 'begin':
        await this.#end();
        this.#keep(request.held);
        this.#setEpoch(request);
        this.#batches = this.#opened[Symbol.asyncIterator]();
        return null;
      case 'next':
        return this.#next(request);
      case 'state':
        this.#setEpoch(request);
        await this.#opened.info();
        return { header: { kind: 'state', state: this.#opened.state() } };
      case 'withWeights':
        return { header: { kind: 'state', state: await this.#opened.withWeights(request.state, request.weights) } };
      case 'report':
        return { header: { kind: 'report', report: inPythonsWords(this.#opened.report()) } };
    }
  }

  async #open({ location, options, withKeys, withRowSeeds, seen, held, ranks }: RequestOf<'open'>): Promise<Answer> {
    await this.#end();
    await this.#loader?.close();
    this.#keep(held);
    this.#dataset ??= await openPlace(location, seen);
    const { rank, worldSize } = resolveRanks(options, ranks);
    const fields = await fieldsIn(options, this.#dataset);
    const whole = options.fields === undefined && fields.isForImages ? { ...options, fields: [] } : options;
    const given = { ...whole, rank, worldSize, reuse: 'manual', slotFile: this.#slotFile, metrics: false } as const;
    this.#loader = new Loader(this.#dataset, given, new Progress(), this.#slots, this.#workers);
    this.#workers = null;
    const numberTypes = await numberTypesOf(fields.names, this.#dataset);
    this.#shown = { withKeys, withRowSeeds, ...shownOf(options), numberTypes };
    const { header } = opened(this.#dataset);
    return { header: { ...header, rank } };
  }

  async #openSamples({ location, options, seen }: RequestOf<'openSamples'>): Promise<Answer> {
    this.#samples?.close();
    this.#dataset ??= await openPlace(location, seen);
    const { names, isForImages } = await fieldsIn(options, this.#dataset);
    this.#samples = await SampleDecoder.open(this.#dataset, { ...options, fields: names });
    this.#images = new ImageFinder(this.#dataset.files, isForImages ? (options as LoaderOptions).image : false);
    this.#shown = { withKeys: true, ...shownOf(options) };
    return opened(this.#dataset);
  }

  async #someSamples({ wanted, draws, whole, encoded }: RequestOf<'samples'>): Promise<Answer> {
    const [dataset, decoder] = [this.#place, this.#samples];
    if (decoder === null) throw nothingOpen('openSamples');
    let batch: Batch;
    if (whole) batch = batchOfStored(await Promise.all(wanted.map((one) => dataset.get(one))));
    else {
      const decoded: DecodedSample[] = [];
      for (const [i, one] of wanted.entries()) {
        const [epoch, occurrence] = draws[i]!;
        decoded.push(await decoder.get(one, { epoch, occurrence, encoded }));
      }
      batch = batchOfDecoded(decoded);
    }
    return frameBatch(batch, this.#given++, null, this.#shown);
  }

  async #findImages({ wanted, withKeys }: RequestOf<'imagePlaces'>): Promise<Answer> {
    const places = await this.#finder.find(wanted);
    if (places === null) return { header: { kind: 'imagePlaces', paths: null, keys: null } };
    const { paths, file, offset, bytes, crc32, labels } = places;
    const keys = withKeys ? await this.#finder.keys(wanted) : null;
    return { header: { kind: 'imagePlaces', paths, keys }, parts: [file, offset, bytes, crc32, labels].map(bytesOf) };
  }

  async #next({ release }: RequestOf<'next'>): Promise<Answer> {
    this.#release(release);
    const batch = await this.#nextBatch();
    if (batch === null) return { header: { kind: 'end' } };
    const number = this.#given++;
    const framed = frameBatch(batch, number, this.#opened.state(), this.#shown);
    const { parts } = framed;
    const header = { ...framed.header, totals: this.#opened.totals() };
    const isInSlot = batch.images !== null || Object.keys(batch.arrays).length > 0;
    if (!isInSlot) return { header, parts, written: () => batch.release() };
    this.#held.set(number, batch);
    return { header, parts };
  }

  async #nextBatch(): Promise<Batch | null> {
    const batches = this.#batches;
    if (batches === null) return null;
    this.#batches = null;
    const { value, done } = await batches.next();
    if (done) return null;
    this.#batches = batches;
    return value;
  }

  /**
   * Releases all other batches, including those whose answer was lost because the other side interrupted the request.
   */
  #keep(numbers: readonly number[]): void {
    this.#release([...this.#held.keys()].filter((number) => !numbers.includes(number)));
  }

  #release(numbers: readonly number[]): void {
    for (const number of numbers) {
      this.#held.get(number)?.release();
      this.#held.delete(number);
    }
  }

  /** An iteration that ends early closes the engine. Batches that the other side still uses keep their slots. */
  async #end(): Promise<void> {
    const batches = this.#batches;
    if (batches === null) return;
    this.#batches = null;
    await batches.return?.();
    await this.#opened.close();
  }

  get #opened(): Loader {
    if (this.#loader !== null) return this.#loader;
    throw nothingOpen('open');
  }

  get #finder(): ImageFinder {
    if (this.#images !== null) return this.#images;
    throw nothingOpen('openSamples');
  }

  get #place(): Dataset {
    if (this.#dataset !== null) return this.#dataset;
    throw nothingOpen('openSamples');
  }

  #setEpoch({ epoch, transforms }: Pick<RequestOf<'begin'>, 'epoch' | 'transforms'>): void {
    this.#opened.useTransforms(transforms as unknown as readonly ScheduledTransform[]);
    if (epoch !== null) this.#opened.setEpoch(epoch);
  }
}

function nothingOpen(request: string): OptionError {
  return new OptionError({}, `Nothing is open yet: send the request "${request}" first.`);
}

function opened({ classes, size, fields, identity, shards }: Dataset): Answer {
  return {
    header: { kind: 'opened', classes, samples: size, fields, identity, shards: shards.map(({ samples }) => samples) },
  };
}

/** Number of samples of each shard. */
async function labelsOf(dataset: Dataset): Promise<Uint8Array[]> {
  const labels: Uint8Array[] = [];
  for (const shard of dataset.shards) {
    const { cls } = await shard.loadParts(['cls']);
    labels.push(new Uint8Array(Int32Array.from(cls).buffer));
  }
  return labels;
}

/** The requested fields. By default, none next to images, and otherwise all. */
async function fieldsIn(
  options: LoaderOptions,
  dataset: Dataset,
): Promise<{ readonly names: readonly string[]; readonly isForImages: boolean }> {
  const isForImages = await hasImages(dataset, options);
  if (Array.isArray(options.fields)) return { names: options.fields, isForImages };
  return { names: isForImages ? [] : fieldsWithoutImages(dataset), isForImages };
}

/** Dtype and layout of the pixels of a transform. */
function shownOf(options: { readonly [name: string]: unknown }): Pick<Shown, 'channels' | 'dtype' | 'layout'> {
  const { transform } = options;
  const format = formatOf(options as FormatOptions);
  const input = transform === 'raw' ? [] : ((transform ?? []) as TransformInput);
  const { dtype, layout } = compileTransform(input, format);
  return { channels: format.channels, dtype, layout };
}

async function openPlace(location: RequestOf<'open'>['location'], seen: RequestOf<'open'>['seen']): Promise<Dataset> {
  if (typeof location === 'string' || Array.isArray(location)) return openDataset(location, seen as OpenOptions);
  const { mixture, ...options } = location;
  const given = Object.entries(seen).find(([, value]) => value !== undefined);
  if (given !== undefined) {
    throw new OptionError(
      {},
      `${given[0]} is for a single dataset: set it in the entry of the mixture that has this "dataset".`,
    );
  }
  return openMixture(mixture as unknown as MixturePart[], options);
}

/** The report with options in the reasons of bad samples as Python spells them. */
function inPythonsWords(report: LoaderReport): LoaderReport {
  return { ...report, badSamples: report.badSamples.map((sample) => spelledBadSample(sample, inPython)) };
}
