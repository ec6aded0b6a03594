import { escapeControls } from '@shardtool/base/text';
import type { ColumnValue } from '@shardtool/format';
import type { StoredDataset } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openFilesGiven } from '../../options/dataset-flags.js';
import { padded, widthOf } from '../../terminal/columns.js';
import { print, UsageError, write } from '../../terminal/outcome.js';
import { entriesLine } from '../../terminal/report-lines.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

export const lsCommand = command({
  name: 'ls',
  summary: 'List the shards, or the samples, of a dataset',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    ...DATASET_FLAGS,
    samples: {
      type: 'boolean',
      default: false,
      group: 'Output',
      isCommon: true,
      describe: 'List samples instead of shards: key, class, size in pixels, fields with their bytes',
    },
    where: {
      type: 'string',
      requiresArg: true,
      group: 'Output',
      placeholder: 'EXPRESSION',
      isCommon: true,
      describe: 'With --samples: only samples that match, such as "width < 64" or "inspect.sharpness < 20"',
    },
    columns: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Output',
      placeholder: 'NAMES',
      describe: 'With --samples: also list these columns, such as score,ingested or inspect.sharpness, or all',
      coerce: (given: readonly string[]) => [...new Set(given.flatMap((text) => text.split(',')))],
    },
  },
  examples: [
    ['$0 ls shards', 'Shards, classes and totals'],
    ['$0 ls shards --samples | head', 'The first samples: key, class, size, fields'],
    ['$0 ls shards --samples --columns source_location,ingested', 'Where samples come from (see pack --provenance)'],
    [
      '$0 ls shards --samples --where "inspect.sharpness < 20" --columns inspect.sharpness',
      'Blurry images, after "shardtool inspect shards"',
    ],
    ['$0 ls shards --samples --json', 'The same for programs, one JSON object per line'],
  ],
  handler: async ({ dataset: location, samples, where, columns, json, ...seen }) => {
    for (const [flag, value] of Object.entries({ columns, where })) {
      if (value !== undefined && !samples) throw new UsageError(`--${flag} goes with --samples.`);
    }
    await using dataset = await openFilesGiven(location, seen);
    if (samples) await listSamples(dataset, { where, asked: columns, json });
    else if (json) await print(JSON.stringify(summary(dataset)));
    else await listShards(dataset);
  },
});

function summary(dataset: StoredDataset): object {
  const { format, identity, size: samples, bytes, fields, classes, classSamples, splits, otherLayouts } = dataset;
  // Some layouts store the names of their classes, but not the number of samples of each.
  const count = Math.max(classes.length, classSamples.length);
  return {
    format,
    identity,
    samples,
    bytes,
    fields,
    classes: Array.from({ length: count }, (_, number) => ({
      name: classes[number] ?? String(number),
      samples: classSamples.length === 0 ? null : (classSamples[number] ?? 0),
    })),
    splits,
    otherLayouts,
    skippedEntries: dataset.skippedEntries,
    shards: dataset.shards.map((shard) => ({ file: shard.name, bytes: shard.bytes, samples: shard.samples })),
  };
}

async function listShards(dataset: StoredDataset): Promise<void> {
  const { shards, format, size, bytes, fields } = dataset;
  if (format === 'folder') return sumUpFolder(dataset);
  const names = shards.map(({ name }) => escapeControls(name));
  const width = names.reduce((most, name) => Math.max(most, widthOf(name)), 0);
  for (const [i, shard] of shards.entries()) {
    const samples = formatCount(shard.samples).padStart(10);
    await print(
      `${padded(names[i]!, width)}  ${samples} ${shard.samples === 1 ? 'sample ' : 'samples'}  ${formatSize(shard.bytes).padStart(7)}`,
    );
  }
  if (size === 0) {
    await print(`${countOf(shards.length, `${layoutsOf(dataset)} shard`)} without samples.`);
    return sayOthers(dataset);
  }
  await print(
    `${countOf(shards.length, `${layoutsOf(dataset)} shard`)}, ${countOf(size, 'sample')}, ${formatSize(bytes)}, ${await classesOf(dataset)}, ` +
      `fields ${fields.map((name) => escapeControls(name)).join(', ')}${splitsOf(dataset)}`,
  );
  for (const line of entriesLine(dataset.skippedEntries)) await print(line);
  await sayOthers(dataset);
}

/** The classes in words. Class numbers may have no names, and counting them requires reading all labels. */
async function classesOf({ classes, classSamples, fields, format, location, mixture }: StoredDataset): Promise<string> {
  const count = Math.max(classes.length, classSamples.length);
  if (count > 0) return countOf(count, 'class', 'classes');
  if (mixture !== null) return 'no classes';
  const { layoutOf } = await import('@shardtool/format');
  const { partReader } = await layoutOf(format);
  return partReader === undefined && !fields.includes('cls')
    ? 'no classes'
    : `no class names (shardtool stats ${escapeControls(location)} counts the classes)`;
}

/** The splits of the location itself. */
function splitsOf({ splits }: StoredDataset): string {
  return splits.length === 0 ? '' : `, splits ${splits.map((name) => escapeControls(name)).join(', ')}`;
}

/** The other layouts in which the location could be read. */
async function sayOthers({ otherLayouts }: StoredDataset): Promise<void> {
  if (otherLayouts.length === 0) return;
  const flags = otherLayouts.map((name) => `--layout ${name}`).join(' or ');
  await print(`This location also has shards of other formats: ${flags} reads them.`);
}

async function sumUpFolder(dataset: StoredDataset): Promise<void> {
  const { location, size, bytes, fields } = dataset;
  await print(
    `${countOf(size, 'image')} as single files, about ${formatSize(bytes)}, ${await classesOf(dataset)}, fields ${fields.map((name) => escapeControls(name)).join(', ')}${splitsOf(dataset)}\n` +
      `They are read in place, without checksums. To pack them into a few large files: shardtool pack ${escapeControls(location)} shards`,
  );
}

/** What `ls --samples` lists. */
interface SamplesGiven {
  readonly where: string | undefined;
  /** Names of label columns, or `all`. */
  readonly asked: readonly string[] | undefined;
  readonly json: boolean;
}

/** Lists the samples shard by shard, so memory does not grow with the dataset. */
async function listSamples(dataset: StoredDataset, { where, asked, json }: SamplesGiven): Promise<void> {
  const { jsonText } = await import('@shardtool/format');
  const isWantedIn = await selectionOf(dataset, where);
  const isAll = asked?.includes('all') === true;
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const { name } = dataset.shards[shard]!;
    const index = await dataset.files.wholeIndex(shard);
    const isWanted = await isWantedIn(shard);
    const columns = [...index.fields];
    const known = new Map([...index.columns, ...(await inspectionOf(dataset, shard, asked ?? []))]);
    const labels = [...known].filter(([name]) => asked === undefined || isAll || asked.includes(name));
    // Shards that were appended after `index --columns` lack its columns until they are indexed again.
    if (!isAll) await checkColumns(asked ?? [], [...known.keys()], dataset.location);
    let lines = '';
    for (let row = 0; row < index.samples; row++) {
      if (!isWanted(row)) continue;
      const fields = columns.filter(([, column]) => column.offset[row]! >= 0);
      const cls = index.cls[row]!;
      const className = dataset.classes[cls] ?? (cls < 0 ? null : String(cls));
      const [width, height] = [index.width[row]!, index.height[row]!];
      lines += json
        ? escapeControls(
            jsonText({
              shard: name,
              key: index.key[row],
              source: index.source[row] || null,
              label: cls < 0 ? null : cls,
              class: className,
              width,
              height,
              orientation: index.orientation[row],
              fields: Object.fromEntries(fields.map(([field, column]) => [field, column.bytes[row]])),
              columns: Object.fromEntries(labels.map(([label, values]) => [label, values[row]])),
            }),
          )
        : [
            escapeControls(index.key[row]!),
            escapeControls(className ?? '-'),
            width > 0 ? `${width}x${height}` : '-',
            fields.map(([field, column]) => `${escapeControls(field)}:${column.bytes[row]}`).join(' '),
            ...(asked === undefined ? [] : labels.map(([name, values]) => columnText(name, values[row] ?? null))),
          ].join('\t');
      lines += '\n';
      if (lines.length < WRITE_CHARACTERS) continue;
      await write(lines);
      lines = '';
    }
    await write(lines);
  }
}

/** Whether a row of a shard matches the expression. Throws WhereError if the expression is invalid. */
async function selectionOf(
  dataset: StoredDataset,
  where: string | undefined,
): Promise<(shard: number) => Promise<(row: number) => boolean>> {
  if (where === undefined) return async () => () => true;
  const { compileWhere, selectableOf } = await import('@shardtool/reader');
  const compiled = compileWhere(where, dataset.classes);
  const selectable = selectableOf(dataset, { where });
  return async (shard) => compiled(await selectable.indexOf(shard));
}

/** The columns of the inspection of a shard that are asked for by name. Empty if the shard was not inspected. */
async function inspectionOf(
  { shards }: StoredDataset,
  shard: number,
  asked: readonly string[],
): Promise<[name: string, values: ArrayLike<ColumnValue>][]> {
  const names = asked.filter((name) => name.startsWith('inspect.'));
  const found = names.length === 0 ? null : await shards[shard]!.loadInspection?.(new Set(names));
  return [...(found?.columns ?? [])].map(([name, { values }]) => [name, values]);
}

/** Throws UsageError for a column that the dataset does not have. */
async function checkColumns(asked: readonly string[], known: readonly string[], location: string): Promise<void> {
  const unknown = asked.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  if (unknown.startsWith('inspect.')) {
    throw new UsageError(
      `${escapeControls(location)} has a shard without the column "${escapeControls(unknown)}": run "shardtool inspect", also after shards were added.`,
    );
  }
  const { didYouMean } = await import('@shardtool/base');
  const has = known.length === 0 ? 'it has no columns of its own' : `it has ${known.join(', ')}`;
  throw new UsageError(
    `${escapeControls(location)} has no column "${escapeControls(unknown)}": ${escapeControls(has)}${didYouMean(unknown, known)}.`,
  );
}

function columnText(name: string, value: string | number | boolean | null): string {
  return escapeControls(`${name}=${value ?? '-'}`);
}

/** Number of characters that are written at a time. */
const WRITE_CHARACTERS = 1 << 16;

/** Datasets of a mixture may be of several layouts. */
function layoutsOf({ format, mixture }: StoredDataset): string {
  const formats = mixture === null ? [format] : mixture.datasets.map(({ dataset }) => dataset.format);
  return [...new Set(formats)].join(' and ');
}
