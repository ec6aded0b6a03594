import { availableCores } from '@shardtool/base';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { size, wholeNumber } from '../../options/flags.js';
import { loaderFlags, loaderOptions } from '../../options/loader-flags.js';
import { withDefault } from '../../options/option-flags.js';
import { readTransform, TRANSFORM_FLAG } from '../../options/transform-flag.js';
import { refuseWithoutImages } from '../../options/without-images.js';
import { stoppable } from '../../terminal/interrupt.js';
import { print } from '../../terminal/outcome.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';
import type { Gain } from '../../tune/gains.js';
import { BUSY } from '../../tune/other-programs.js';
import type { TuneResult } from '../../tune/tune.js';

const { workers: _, ...FLAGS } = loaderFlags('bench');
/** A smaller gain is within the difference between two runs. */
const LEAST_GAIN = 1.05;

export const tuneCommand = command({
  name: 'tune',
  summary: 'Measure what limits a loader, and what each remedy would bring',
  details:
    'Remedies are tried on copies of a few hundred images, in turns with the loader as it is. A gain is the median of its turns; the smallest and the largest follow it if they differ. If other programs use the processor in the meantime, the command says so: its gains are then less certain.',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    ...FLAGS,
    'batch-size': withDefault(FLAGS['batch-size'], 256),
    transform: TRANSFORM_FLAG,
    'cpu-budget': {
      ...wholeNumber('--cpu-budget', 'Number of cores for the loader'),
      group: 'Performance',
      isCommon: true,
      defaultDescription: 'all',
    },
    memory: {
      ...size('--memory', 'Memory for the loader'),
      group: 'Performance',
      isCommon: true,
      defaultDescription: 'no limit',
    },
    seconds: {
      ...wholeNumber('--seconds', 'How long to measure, without starting', { default: 20 }),
      group: 'Measurement',
    },
    ...DATASET_FLAGS,
  },
  examples: [
    ['$0 tune shards', 'What would make training on these shards faster?'],
    ['$0 tune shards --transform eval224 --cpu-budget 8 --memory 4GB', 'For a loader that has 8 cores and 4 GB'],
  ],
  handler: async ({ dataset: location, json, transform, cpuBudget, memory, seconds, ...given }) => {
    const { tuneDataset } = await import('../../tune/tune.js');
    const options = loaderOptions('bench', given);
    const steps = await readTransform(transform, options.aspectBuckets);
    await using dataset = await openGiven(location, given);
    await refuseWithoutImages(dataset, 'measure the loader with "shardtool bench" instead');
    const workers = cpuBudget ?? availableCores();
    const loader = { ...options, transform: steps, workers };
    const result = await stoppable('', (signal) => tuneDataset(dataset, { loader, memory, seconds, signal }));
    await print(json ? JSON.stringify(result) : describe(result, memory));
  },
});

/** The conclusion, the gains, and the options to use. */
function describe(result: TuneResult, memory: number | undefined): string {
  const { limit, gains, options, memoryBytes } = result;
  const rate = (value: number) => `${formatCount(Math.round(value))} images/s`;
  const worth = gains.filter(({ times }) => times >= LEAST_GAIN);
  const others = gains.filter(({ times }) => times < LEAST_GAIN);
  const width = Math.max(...gains.map(({ what }) => what.length));
  const { workers, prefetchBatches } = options;
  return [
    `${rate(result.imagesPerSecond)} with ${countOf(workers, 'worker')}: ${limit} is the limit`,
    `decoding alone: ${rate(result.decodedPerSecond)}; reading alone: ${rate(result.readPerSecond)}`,
    worth.length === 0
      ? 'Nothing that was tried makes it faster by 5 % or more.'
      : `What would help (tried on ${countOf(result.sampleImages, 'image')} of this dataset, median of ${countOf(result.turns, 'turn')}):`,
    ...worth.map((gain) => `  ${gain.what.padEnd(width)}  ${timesText(gain)} times as fast: ${gain.how}`),
    ...(worth.length > 0 && others.length > 0 ? [`Less than 5 %: ${others.map(({ what }) => what).join(', ')}`] : []),
    ...othersLine(result.otherPrograms),
    memoryLine(memoryBytes, memory, result.fitsMemory),
    `Use: workers ${workers}, prefetchBatches ${prefetchBatches} (--workers, --prefetch-batches; in Python workers, prefetch_batches)`,
  ].join('\n');
}

/** The gain, and the range of the turns if it is wide. */
function timesText({ times, least, most }: Gain): string {
  const [low, high] = [least.toFixed(1), most.toFixed(1)];
  return low === high ? times.toFixed(2) : `${times.toFixed(2)} (${low} to ${high})`;
}

function othersLine(share: number | null): string[] {
  if (share === null || share < BUSY) return [];
  return [
    `Other programs used ${Math.round(share * 100)} % of the processor during the measurement, so the gains are uncertain: repeat it when they do not run.`,
  ];
}

function memoryLine(peak: number, memory: number | undefined, fits: boolean): string {
  const line = `memory: ${formatSize(peak)} at most`;
  if (memory === undefined || peak <= memory) return line;
  return fits
    ? `${line}, more than the ${formatSize(memory)} that were given: fewer batches ahead save the rest`
    : `${line}, more than the ${formatSize(memory)} that were given, even with one batch ahead: use a smaller batch`;
}
