import { DamagedShardError, NpyError, OptionError, optionName, SampleChecksumError, sentence } from '@shardtool/base';
import { describeNpyRow, isImageField, isSameNpyRow, npyRowOf } from '@shardtool/format';
import { formatOf } from '../../codec/pixel-format.js';
import { checkFieldsAndColumns } from '../../dataset/fields/field-names.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import type { ExtraField } from '../ring/extra-fields.js';
import { checkLabels } from '../setup/labels-option.js';
import { rowBytesOf } from './decoder-output.js';
import type { LoaderOutput } from './output.js';
import { checkFieldsAlike, type OutputRequest } from './output-request.js';

/**
 * The output of a loader whose batches have no images. The workers stack the `.npy` fields, unless `collate` is `list`.
 * Throws {@link OptionError}.
 */
export async function outputOfFields(dataset: StoredDataset, options: OutputRequest): Promise<LoaderOutput> {
  const labels = options.labels === undefined ? null : checkLabels(options.labels);
  if (options.fields !== undefined) await checkFieldsAndColumns('fields', options.fields, dataset);
  if (labels !== null) await checkFieldsAndColumns('labels', [labels.field], dataset);
  const named = options.fields ?? fieldsWithoutImages(dataset);
  if (options.fields === undefined) checkFieldsAlike(dataset, named);
  // Labels are read from the values of their field.
  const arrays =
    options.collate === 'list'
      ? []
      : await stackedFields(
          dataset,
          named.filter((field) => field !== labels?.field),
        );
  const isStacked = new Set(arrays.map(({ field }) => field));
  const others = named.filter((field) => !isStacked.has(field));
  const batch = { kind: 'fields' } as const;
  return {
    batch,
    format: formatOf(options),
    decoder: null,
    codec: null,
    decode: options.decode,
    image: undefined,
    extraFields: arrays,
    annotations: null,
    fields: labels === null || others.includes(labels.field) ? others : [...others, labels.field],
    drawsTexts: options.captionSampling === 'random',
    steps: {},
    mixes: [],
    labels,
    whole: false,
    rowBytes: rowBytesOf(batch, arrays, 1),
    isUncompressedOnly: false,
    isImageOnly: false,
    usesCropIndex: false,
  };
}

/** The fields that are delivered by default in batches without images. */
export function fieldsWithoutImages({ fields }: StoredDataset): string[] {
  return fields.filter((field) => !isImageField(field) && field !== 'cls');
}

/** The `.npy` fields among these that can be stacked, with the dtype and shape of their rows. */
async function stackedFields(dataset: StoredDataset, fields: readonly string[]): Promise<ExtraField[]> {
  const arrays = fields.filter((field) => dataset.fields.includes(field) && /(^|\.)npy$/.test(field));
  if (arrays.length === 0) return [];
  const parts = dataset.mixture?.datasets ?? [{ name: dataset.location, dataset }];
  const found = await Promise.all(
    parts.map(async (part) => ({ ...part, rows: await firstRows(part.dataset, arrays) })),
  );
  return arrays.flatMap((field): ExtraField[] => {
    const [first, ...others] = found.flatMap(({ name, rows }) => {
      const row = rows.get(field);
      return row === undefined ? [] : [{ name, row }];
    });
    if (first === undefined) throw noArray(dataset, field);
    const other = others.find(({ row }) => !isAlike(row, first.row));
    if (other !== undefined) throw unlike(field, first, other);
    return first.row === 'structured' ? [] : [{ field, kind: 'array', array: first.row }];
  });
}

/** The dtype and shape of a field, and where they were found. Structured arrays cannot be stacked. */
type FirstRow = NonNullable<ExtraField['array']> | 'structured';

/** Number of samples in which arrays are searched. More damaged samples in a row mean that the dataset is damaged. */
const MOST_LOOKED_AT = 32;

/** The dtype and shape of each field in the first sample that has it and is not damaged. */
async function firstRows(dataset: StoredDataset, fields: readonly string[]): Promise<ReadonlyMap<string, FirstRow>> {
  const rows = new Map<string, FirstRow>();
  for (const field of fields) {
    let looked = 0;
    for await (const index of samplesWith(dataset, field)) {
      if (looked++ === MOST_LOOKED_AT) break;
      const row = await rowIn(dataset, index, field);
      if (row === null) continue;
      rows.set(field, row);
      break;
    }
  }
  return rows;
}

/** The indices of the samples that have the field. */
async function* samplesWith({ shards }: StoredDataset, field: string): AsyncGenerator<number> {
  let first = 0;
  for (const shard of shards) {
    const { fields } = await shard.loadParts(['fields']);
    const offsets = fields.get(field)?.offset;
    for (let row = 0; row < (offsets?.length ?? 0); row++) if (offsets![row]! >= 0) yield first + row;
    first += shard.samples;
  }
}

async function rowIn(dataset: StoredDataset, index: number, field: string): Promise<FirstRow | null> {
  try {
    const { fields, shard, key } = await dataset.get(index);
    const bytes = fields[field];
    const row = bytes === undefined ? null : npyRowOf(bytes);
    return row === null ? 'structured' : { ...row, shard, key };
  } catch (error) {
    // Whether a damaged sample ends the loop is decided when its batch is made.
    const isDamaged =
      error instanceof NpyError || error instanceof SampleChecksumError || error instanceof DamagedShardError;
    if (isDamaged) return null;
    throw error;
  }
}

function isAlike(a: FirstRow, b: FirstRow): boolean {
  if (a === 'structured' || b === 'structured') return a === b;
  return isSameNpyRow(a, b);
}

function noArray(dataset: StoredDataset, field: string): OptionError {
  return new OptionError(
    {},
    sentence`The first samples of ${dataset.location} that have the field "${field}" contain no array in it that can be read: run "shardtool verify", or set ${optionName('collate')} to 'list' and ${optionName('onBad')} to 'skip'.`,
  );
}

interface Named {
  readonly name: string;
  readonly row: FirstRow;
}

function unlike(field: string, first: Named, other: Named): OptionError {
  const described = ({ row }: Named): string => (row === 'structured' ? 'a structured array' : describeNpyRow(row));
  return new OptionError(
    {},
    sentence`The field "${field}" is ${described(first)} in ${first.name} and ${described(other)} in ${other.name}, which cannot be rows of one array: store arrays of one dtype and shape, or set ${optionName('collate')} to 'list'.`,
  );
}
