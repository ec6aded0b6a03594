import {
  type ColumnContent,
  EXTENSION_COLUMN,
  fieldType,
  isImageField,
  KEY_COLUMN,
  kindOfField,
  layoutWith,
  type Manifest,
  openToConvert,
  readShardIndex,
  type ShardIndex,
  type Table,
  type TableColumn,
  type TableNames,
  walkShardIndex,
} from '@shardtool/format';
import type { DatasetShard } from '../shard/dataset-shards.js';
import type { Recast } from './input/recast.js';
import { type View, viewedShard, wholeIndex } from './input/view.js';

/** Properties of the samples that are known before the first one is written. */
interface TableInput {
  readonly shards: readonly DatasetShard[];
  readonly classes: readonly string[];
  readonly columns: Manifest['columns'];
  readonly view?: View | undefined;
  readonly recast?: Recast | undefined;
}

type Seen = Pick<ShardIndex, 'samples' | 'fields' | 'cls' | 'columns'> & {
  /** True if the fields were read, so that class fields without a valid class are known. */
  readonly isRead: boolean;
};

/**
 * Determines the columns of shards whose samples must all have the same ones: the fields and label columns of all
 * shards, from their indexes or by walking their headers. If images have several field names (`jpg` in some samples,
 * `png` in others), one column contains them all.
 */
export async function tableOf(
  { shards, classes, columns, view, recast }: TableInput,
  names: TableNames,
): Promise<Table> {
  const survey = new Survey(columns.map(({ name }) => name));
  for (const [number, shard] of shards.entries()) survey.add(await seen(shard, number, view));
  const images = survey.images();
  const made: TableColumn[] = [{ name: KEY_COLUMN, holds: 'key', of: '', isOptional: false }];
  const free = (name: string): string => (made.some((column) => column.name === name) ? free(`${name}_`) : name);
  const add = (name: string, holds: ColumnContent, of: string, isOptional: boolean) =>
    made.push({ name: free(name), holds, of, isOptional });
  if (images.length > 0) {
    const isOptional = images.reduce((sum, name) => sum + survey.having(name), 0) < survey.samples;
    add(names.image, 'image', images.length === 1 ? images[0]! : '', isOptional);
    if (images.length > 1) add(EXTENSION_COLUMN, 'ending', '', isOptional);
  }
  const isReclassed = view !== undefined || (recast !== undefined && recast.from !== 'field');
  if (classes.length > 0 || survey.hasClass || survey.having('cls') > 0) add(names.cls, 'class', '', false);
  for (const field of survey.fields()) {
    const isNumber = field === 'cls' && (isReclassed || !survey.hasOddClass);
    if (images.includes(field) || isNumber) continue;
    add(field, contentOf(field), field, survey.having(field) < survey.samples);
  }
  const mayLack = recast !== undefined && recast.labels !== null;
  for (const { name, type } of columns) add(name, type, name, mayLack || survey.lacks(name));
  return { columns: made, classes };
}

function contentOf(field: string): ColumnContent {
  if (kindOfField(field.slice(field.lastIndexOf('.') + 1)) !== undefined) return 'image';
  const type = fieldType(field);
  return type === 'integer' ? 'text' : type;
}

async function seen(shard: DatasetShard, number: number, view: View | undefined): Promise<Seen> {
  if (view !== undefined)
    return { ...(await wholeIndex(await viewedShard(view, number))), isRead: shard.record !== null };
  const { indexPath, format, path, reading, storage } = shard;
  if (indexPath !== null)
    return { ...(await readShardIndex(indexPath, { parts: ['fields', 'cls', 'columns'] }, storage)), isRead: true };
  const source = await openToConvert(format, path, reading, storage);
  try {
    return { ...(await walkShardIndex(await layoutWith(format, reading), source)), isRead: false };
  } finally {
    await source.close();
  }
}

/** Fields and columns seen in all shards so far. */
class Survey {
  samples = 0;
  hasClass = false;
  /** A class field contains something other than a number. */
  hasOddClass = false;
  readonly #labels: readonly string[];
  readonly #having = new Map<string, number>();
  readonly #lacking = new Set<string>();
  /** Field names of images, and combinations of them that occur in one sample. */
  readonly #images = new Set<string>();
  readonly #together = new Set<string>();

  constructor(labels: readonly string[]) {
    this.#labels = labels;
  }

  add({ samples, fields, cls, columns, isRead }: Seen): void {
    this.samples += samples;
    this.hasClass ||= cls.some((number) => number >= 0);
    for (const [name, { offset }] of fields) {
      const having = offset.reduce((sum, at) => (at < 0 ? sum : sum + 1), 0);
      this.#having.set(name, this.having(name) + having);
    }
    const named = fields.get('cls')?.offset;
    if (named !== undefined && isRead) this.hasOddClass ||= named.some((at, row) => at >= 0 && cls[row] === -1);
    for (const name of this.#labels)
      if (columns.get(name)?.every((value) => value !== null) !== true) this.#lacking.add(name);
    this.#addImages(samples, fields);
  }

  #addImages(samples: number, fields: Seen['fields']): void {
    const candidates = [...fields].filter(([name]) => isImageField(name)).sort(([a], [b]) => (a < b ? -1 : 1));
    for (let row = 0; row < samples; row++) {
      let image: string | null = null;
      for (const [name, { offset }] of candidates) {
        if (offset[row]! < 0) continue;
        if (image === null) this.#images.add(name);
        else this.#together.add(`${image} ${name}`);
        image ??= name;
      }
    }
  }

  fields(): string[] {
    return [...this.#having.keys()].sort();
  }

  having(field: string): number {
    return this.#having.get(field) ?? 0;
  }

  lacks(label: string): boolean {
    return this.#lacking.has(label);
  }

  /** Image fields that one column can contain: no sample has two of them. */
  images(): string[] {
    const taken: string[] = [];
    for (const name of [...this.#images].sort()) {
      if (!taken.some((other) => this.#together.has(`${other} ${name}`))) taken.push(name);
    }
    return taken;
  }
}
