import { didYouMean, OptionError, optionName, sentence } from '@shardtool/base';
import { fieldType } from '@shardtool/format';
import type { StoredDataset } from '../stored-dataset.js';

/** The parts of a dataset that contain names of fields and columns. */
type Named = Pick<StoredDataset, 'fields' | 'shards'>;

/** Throws {@link OptionError} if no sample has a field with one of these names. */
export function checkFields(option: string, names: readonly string[], { fields }: Pick<Named, 'fields'>): void {
  const unknown = names.find((name) => !fields.includes(name));
  if (unknown !== undefined) throw noSuchField(option, unknown, fields, []);
}

/** Like {@link checkFields}, but also accepts names of label columns. Reads indexes until one has the column. */
export async function checkFieldsAndColumns(
  option: string,
  names: readonly string[],
  { fields, shards }: Named,
): Promise<void> {
  const missing = new Set(names.filter((name) => !fields.includes(name)));
  const known = new Set<string>();
  for (const shard of shards) {
    if (missing.size === 0) return;
    const { columns } = await shard.loadParts(['columns']);
    for (const name of columns.keys()) {
      known.add(name);
      missing.delete(name);
    }
  }
  for (const name of missing) throw noSuchField(option, name, fields, [...known]);
}

export type NumberType = 'int' | 'double';
/** Types of the fields and columns that contain numbers. */
export type NumberTypes = ReadonlyMap<string, NumberType>;

/** Returns the fields and columns among these that contain numbers. The first index with a column decides its type. */
export async function numberTypesOf(names: readonly string[], { fields, shards }: Named): Promise<NumberTypes> {
  const types = new Map<string, NumberType>();
  const columns = new Set(names.filter((name) => !fields.includes(name)));
  for (const name of names) if (!columns.has(name) && fieldType(name) === 'integer') types.set(name, 'int');
  for (const shard of shards) {
    if (columns.size === 0) break;
    const { columnTypes } = await shard.loadParts(['columnTypes']);
    for (const [name, type] of columnTypes ?? []) {
      if (columns.delete(name) && (type === 'int' || type === 'double')) types.set(name, type);
    }
  }
  return types;
}

function noSuchField(option: string, name: string, fields: readonly string[], columns: readonly string[]): OptionError {
  const whole = fields.find((field) => name.startsWith(`${field}.`));
  if (option === 'labels' && whole !== undefined) {
    const part = name.slice(whole.length + 1);
    return new OptionError(
      {},
      `labels: "${name}" is a part of the field ${whole}, but labels must be a whole field or a column. Write "${part}" and the ` +
        `keys into a CSV file, add it with "shardtool overlay add --labels", and pass "${part}"; or use fields: ['${whole}'].`,
    );
  }
  const near = didYouMean(name, [...fields, ...columns]);
  const there = [
    `the fields are ${fields.join(', ') || 'none'}`,
    ...(columns.length > 0 ? [`the columns are ${columns.join(', ')}`] : []),
  ];
  return new OptionError(
    {},
    sentence`${optionName(option)}: no sample has "${name}"${near === '' ? ': ' : `${near} `}${there.join(', ')}.`,
  );
}
