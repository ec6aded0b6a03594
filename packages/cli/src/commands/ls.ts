import { openDataset, type Dataset } from '@shardtool/reader';
import type { CommandModule } from 'yargs';
import { write } from '../outcome.js';
import { formatCount, formatSize } from '../size.js';

interface LsArguments {
  readonly dataset: string;
  readonly samples: boolean;
  readonly json: boolean;
}

export const lsCommand: CommandModule<object, LsArguments> = {
  command: 'ls <dataset>',
  describe: 'List the shards, or the samples, of a dataset',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .option('samples', { type: 'boolean', default: false, describe: 'One line a sample instead of one a shard' })
      .option('json', { type: 'boolean', default: false, describe: 'JSON: one object, or one object a line for samples' })
      .example('$0 ls shards', 'Shards, classes and totals')
      .example('$0 ls shards --samples | head', 'The first samples: key, class, size, fields')
      .example('$0 ls shards --samples --json', 'The same for programs'),
  handler: async ({ dataset: location, samples, json }) => {
    const dataset = await openDataset(location);
    if (samples) await listSamples(dataset, json);
    else if (json) await write(`${JSON.stringify(summary(dataset))}\n`);
    else await listShards(dataset);
    await dataset.close();
  },
};

function summary(dataset: Dataset): object {
  const { format, identity, size: samples, bytes, fields, classes, classSamples } = dataset;
  return {
    format,
    identity,
    samples,
    bytes,
    fields,
    classes: classes.map((name, number) => ({ name, samples: classSamples[number] })),
    shards: dataset.shards.map((shard) => ({ file: shard.name, bytes: shard.bytes, samples: shard.samples })),
  };
}

async function listShards(dataset: Dataset): Promise<void> {
  for (const shard of dataset.shards) {
    await write(`${shard.name}  ${formatCount(shard.samples).padStart(12)} samples  ${formatSize(shard.bytes).padStart(8)}\n`);
  }
  const classes = dataset.classes.length === 0 ? 'no classes' : `${formatCount(dataset.classes.length)} classes`;
  await write(
    `${formatCount(dataset.shards.length)} ${dataset.format} shards, ${formatCount(dataset.size)} samples, ` +
      `${formatSize(dataset.bytes)}, ${classes}, fields ${dataset.fields.join(', ')}\n`,
  );
}

/** Goes through the indexes shard by shard: memory does not grow with the dataset. */
async function listSamples(dataset: Dataset, json: boolean): Promise<void> {
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const { name } = dataset.shards[shard]!;
    const index = await dataset.files.index(shard);
    for (let row = 0; row < index.samples; row++) {
      const fields = [...index.fields].filter(([, column]) => column.offset[row]! >= 0);
      const cls = index.cls[row]!;
      const className = dataset.classes[cls] ?? (cls < 0 ? null : String(cls));
      const [width, height] = [index.width[row]!, index.height[row]!];
      const line = json
        ? JSON.stringify({
            shard: name,
            key: index.key[row],
            source: index.source[row] || null,
            cls: cls < 0 ? null : cls,
            class: className,
            width,
            height,
            orientation: index.orientation[row],
            fields: Object.fromEntries(fields.map(([field, column]) => [field, column.bytes[row]])),
          })
        : [
            index.key[row],
            className ?? '-',
            width > 0 ? `${width}x${height}` : '-',
            fields.map(([field, column]) => `${field}:${column.bytes[row]}`).join(' '),
          ].join('\t');
      await write(`${line}\n`);
    }
  }
}
