import { readFile } from 'node:fs/promises';
import { visible } from '@shardtool/format/visible';
import type { StepInput, TransformInput } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { loaderFlags, loaderOptions } from '../../options/loader-flags.js';
import type { Grid } from '../../preview/preview.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const previewCommand = command({
  name: 'preview',
  positionals: '<dataset>',
  describe: 'Write a picture of a transformed batch with its classes: what the model sees',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards, or one tar' })
      .options(DATASET_FLAGS)
      .option('transform', {
        type: 'string',
        requiresArg: true,
        default: 'train224',
        describe: 'train224, eval224, or a JSON file with a list of steps',
      })
      .options(loaderFlags('preview'))
      .option('grid', {
        type: 'string',
        requiresArg: true,
        default: '8x8',
        describe: 'Columns x rows',
        coerce: gridOf,
      })
      .option('output', { type: 'string', requiresArg: true, demandOption: true, describe: 'PNG file to write' })
      .example('$0 preview shards --output grid.png', 'The first 64 samples of an epoch')
      .example('$0 preview shards --transform list.json --grid 4x2 --output grid.png', 'Eight, by your own list'),
  handler: async ({ dataset: location, transform, grid, output, ...given }) => {
    const { writePreview } = await import('../../preview/preview.js');
    await using dataset = await openGiven(location, given);
    const steps = await readTransform(transform);
    const shown = await writePreview(dataset, {
      transform: steps,
      loader: loaderOptions('preview', given),
      grid,
      output,
    });
    await print(
      `Wrote ${visible(output)}: ${countOf(shown.images, 'image')} of ${shown.width}x${shown.height} pixels.`,
    );
  },
});

function gridOf(given: unknown): Grid {
  const match = /^(\d{1,3})x(\d{1,3})$/.exec(String(given));
  const [columns, rows] = match === null ? [0, 0] : [Number(match[1]), Number(match[2])];
  if (columns > 0 && rows > 0) return { columns, rows };
  throw new UsageError(`--grid takes columns x rows, as 8x8, and not "${given}".`);
}

/** A preset by its name, or the list in a file. */
async function readTransform(given: string): Promise<TransformInput> {
  if (given === 'train224' || given === 'eval224') return given;
  let text: string;
  try {
    text = await readFile(given, 'utf8');
  } catch (cause) {
    throw new UsageError(
      `--transform takes train224, eval224 or a JSON file, and ${given} cannot be read (${(cause as Error).message}).`,
    );
  }
  try {
    return JSON.parse(text) as StepInput[];
  } catch (cause) {
    throw new UsageError(`${given} is not JSON (${(cause as Error).message}); it is to be a list of steps.`);
  }
}
