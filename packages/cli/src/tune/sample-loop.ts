import { total } from '@shardtool/base';
import { type Batch, type Dataset, type Loader, type LoaderOptions, openDataset } from '@shardtool/reader';

/** Number of batches of the sample that are prepared ahead. */
export const SAMPLE_PREFETCH = 2;

export interface Measure {
  /** Images per second. */
  readonly rate: number;
  readonly imagesPerCpuSecond: number;
}

/** An endless loop over the sample, which is measured now and then. In between, the workers prepare some batches and wait. */
export class SampleLoop {
  readonly #dataset: Dataset;
  readonly #loader: Loader;
  readonly #batches: AsyncIterator<Batch>;
  /** Time until which the workers prepare batches after the last turn. */
  busyUntil = 0;

  private constructor(dataset: Dataset, loader: Loader) {
    this.#dataset = dataset;
    this.#loader = loader;
    this.#batches = loader[Symbol.asyncIterator]();
  }

  static async open(location: string, options: LoaderOptions, warmUp: number): Promise<SampleLoop> {
    const dataset = await openDataset(location);
    const loop = new SampleLoop(dataset, dataset.loader({ ...options, epochsPerLoop: Number.MAX_SAFE_INTEGER }));
    try {
      await loop.#batches.next();
      await loop.measure(warmUp, 0);
      return loop;
    } catch (error) {
      await loop[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Size of the dataset in bytes. */
  get bytes(): number {
    return total(this.#dataset.shards.map(({ bytes }) => bytes));
  }

  /** Measures for at least `seconds` and one batch, when another loop is no longer busy. */
  async measure(seconds: number, othersBusyUntil: number): Promise<Measure> {
    // Batches that were prepared since the last turn come at once.
    for (let batch = 0; batch <= SAMPLE_PREFETCH || performance.now() < othersBusyUntil; batch++)
      await this.#batches.next();
    const [begin, cpu] = [performance.now(), process.cpuUsage()];
    let [images, batches, end] = [0, 0, begin];
    while (images === 0 || end - begin < seconds * 1000) {
      images += (await this.#batches.next()).value.size;
      batches++;
      end = performance.now();
    }
    // Twice the time of the batches that are prepared, because both loops may share cores.
    this.busyUntil = end + (2 * (SAMPLE_PREFETCH + 1) * (end - begin)) / batches;
    const { user, system } = process.cpuUsage(cpu);
    return { rate: (images * 1000) / (end - begin), imagesPerCpuSecond: (images * 1e6) / (user + system) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loader.close();
    await this.#dataset.close();
  }
}
