import { existsSync } from 'node:fs';
import path from 'node:path';
import { escapeControls, toMessage } from '@shardtool/base/text';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { loaderFlags, loaderOptions } from '../../options/loader-flags.js';
import { ANNOTATIONS_FLAG, readAnnotationsFlag, readTransform, TRANSFORM_FLAG } from '../../options/transform-flag.js';
import { refuseWithoutImages } from '../../options/without-images.js';
import type { Grid, Shown } from '../../preview/preview.js';
import { foundFault, print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const previewCommand = command({
  name: 'preview',
  summary: 'Write a picture of transformed images with their classes: what the model sees',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    output: {
      type: 'string',
      requiresArg: true,
      default: 'preview.png',
      group: 'Output',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'File to write: .png, .jpg or .webp',
      coerce: outputOf,
    },
    grid: {
      type: 'string',
      requiresArg: true,
      default: '8x8',
      group: 'Output',
      placeholder: 'COLUMNSxROWS',
      isCommon: true,
      describe: 'Number of columns and rows',
      coerce: gridOf,
    },
    transform: TRANSFORM_FLAG,
    annotations: ANNOTATIONS_FLAG,
    ...loaderFlags('preview'),
    ...DATASET_FLAGS,
  },
  examples: [
    ['$0 preview shards', 'The first 64 samples of an epoch, in preview.png'],
    ['$0 preview shards --transform list.json --grid 4x2 --output grid.png', 'Eight images, by your own transform'],
  ],
  handler: async ({ dataset: location, transform, annotations, grid, output, json, ...given }) => {
    const { writePreview } = await import('../../preview/preview.js');
    await using dataset = await openGiven(location, given);
    if (dataset.size === 0) throw new UsageError(`${location} contains no samples, so there is nothing to show.`);
    await refuseWithoutImages(dataset, 'use "shardtool cat" or "shardtool view" instead');
    const loader = { ...loaderOptions('preview', given), annotations: await readAnnotationsFlag(annotations) };
    const steps = await readTransform(transform, loader.aspectBuckets);
    const shown = await writePreview(dataset, {
      transform: steps,
      loader,
      grid,
      output,
    });
    await print(json ? JSON.stringify({ output, ...shown }) : describe(shown, output));
    if (shown.images === 0) foundFault();
  },
});

function describe({ images, sizes, bad, classes }: Shown, output: string): string {
  const examples = bad.slice(0, 10).map(({ key, reason }) => `  ${escapeControls(key)}: ${toMessage(reason)}`);
  return [
    images === 0
      ? 'No sample could be shown, and nothing was written.'
      : `Wrote ${escapeControls(output)}: ${countOf(images, 'image')} of ${sizes.map(({ width, height }) => `${width}x${height}`).join(', ')} pixels.`,
    ...(bad.length === 0 ? [] : [`${countOf(bad.length, 'bad sample')} on the way:`, ...examples]),
    ...(bad.length > 10 ? [`  and ${countOf(bad.length - 10, 'more', 'more')}`] : []),
    ...(classes === null
      ? []
      : [`There is no font on this system; the classes are: ${escapeControls(classes.join(', '))}`]),
  ].join('\n');
}

const EXTENSIONS = ['.png', '.jpg', '.jpeg', '.webp'];

function gridOf(given: unknown): Grid {
  const match = /^(\d{1,3})x(\d{1,3})$/.exec(String(given));
  const [columns, rows] = match === null ? [0, 0] : [Number(match[1]), Number(match[2])];
  if (columns > 0 && rows > 0) return { columns, rows };
  throw new UsageError(`--grid takes columns x rows, such as 8x8, not "${given}".`);
}

/** Returns the path of the picture. Throws {@link UsageError} for an unsupported extension, and if the folder does not exist. */
function outputOf(given: unknown): string {
  const output = String(given);
  if (!EXTENSIONS.includes(path.extname(output).toLowerCase())) {
    throw new UsageError(`--output takes a file with the extension ${EXTENSIONS.join(', ')}, not "${output}".`);
  }
  const folder = path.dirname(output);
  if (!existsSync(folder)) throw new UsageError(`The folder ${folder} of --output does not exist: create it first.`);
  return output;
}
