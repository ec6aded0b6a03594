import { DamagedShardError, TruncatedShardError } from '@shardtool/base';
import type { Source } from '../../source.js';
import { FileWindow } from '../bytes/file-window.js';
import { unpacked } from '../bytes/unpacked.js';
import { labelValue } from '../columns/column-names.js';
import { decodeTable, isField, SampleOfTable, TABLE_MARK, type TableColumn } from '../columns/table.js';
import type { ChosenColumns, OnDamaged, SamplePosition, TableLayout } from '../layout.js';
import type { Feature } from './example.js';
import { contentsOf, exampleAt, keyAt, Naming } from './example-contents.js';
import { checkRecord, damaged, FOOT_BYTES, HEAD_BYTES, isGzip, recordBytes } from './records.js';
import { TfrecordWriter } from './write.js';

/**
 * TensorFlow's record files with a tf.train.Example in each record, read in place: a length (uint64, little-endian) and
 * its masked crc32c, the example, and its masked crc32c (tensorflow, core/lib/io/record_writer.h). Opening reads
 * lengths and features; `index`, `verify` and `convert` check every record against its crc32c. Samples have no keys
 * there: here the key is the shard's name and the record's number.
 */
export const tfrecord: TableLayout = layoutWith({});

function layoutWith(chosen: ChosenColumns): TableLayout {
  const layout: TableLayout = {
    name: 'tfrecord',
    extension: '.tfrecord',
    isOpenedByWalk: true,
    samples: (source, _, onDamaged) => walk(source, true, chosen, onDamaged),
    headers: (source) => walk(source, false, chosen),
    unpack: async (source) => ((await isGzip(source)) ? unpacked(source, 'gz') : source),
    choosing: layoutWith,
    columnNames: { image: 'image/encoded', cls: 'image/class/label' },
    ofTable: (table) => ({
      ...layout,
      table,
      createWriter: (fd, shard, most) => new TfrecordWriter(fd, shard, table, most),
    }),
  };
  return layout;
}

const YIELDED = 256;
/** Enough for the names of the columns. */
const MOST_MARK_BYTES = 1 << 20;

async function* walk(
  source: Source,
  isChecked: boolean,
  chosen: ChosenColumns,
  onDamaged?: OnDamaged,
): AsyncGenerator<readonly SamplePosition[]> {
  const { location: shard, size } = source;
  const window = new FileWindow(source);
  const stem = shard
    .slice(Math.max(shard.lastIndexOf('/'), shard.lastIndexOf('\\')) + 1)
    .replace(/\.(tfrecords?|tfrec)$/, '');
  const naming = new Naming(shard, chosen);
  let found: SamplePosition[] = [];
  let ours: ReadonlyMap<string, TableColumn> | null = null;
  let record: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  for (let offset = 0, number = 0; offset < size; number++) {
    const bytes = await recordBytes(window, shard, offset, size);
    const start = offset + HEAD_BYTES;
    const numbered = `${stem}/${String(number).padStart(6, '0')}`;
    if (isChecked) {
      const trouble = await troubleOf(async () => {
        record = await checkRecord(source, start, bytes, record);
      });
      if (trouble !== null) {
        if (onDamaged === undefined) throw trouble;
        onDamaged(trouble, ours === null && chosen.key === undefined ? numbered : undefined);
        offset = start + bytes + FOOT_BYTES;
        continue;
      }
    }
    const features = await exampleAt(window, shard, start, bytes);
    if (offset === 0 && Object.values(chosen).every((name) => name === undefined))
      ours = await tableIn(window, features.get(TABLE_MARK));
    if (ours !== null) {
      const whole = { offset, bytes: HEAD_BYTES + bytes + FOOT_BYTES };
      found.push({ ...whole, ...(await ownContentsOf(window, shard, features, ours, offset)) });
      offset += whole.bytes;
      if (found.length === YIELDED) yield found.splice(0);
      continue;
    }
    const key = chosen.key === undefined ? numbered : await keyAt(window, shard, features, chosen.key, offset);
    const span = { offset, bytes: HEAD_BYTES + bytes + FOOT_BYTES };
    found.push({ key, ...span, ...(await contentsOf(window, shard, key, features, naming)) });
    offset += span.bytes;
    if (found.length < YIELDED) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

/** The table in the first record of a file that shardtool wrote; null for a file of other software. */
async function tableIn(
  window: FileWindow,
  mark: Feature | undefined,
): Promise<ReadonlyMap<string, TableColumn> | null> {
  const [place] = mark?.kind === 'bytes' ? mark.values : [];
  if (place === undefined || place.bytes > MOST_MARK_BYTES) return null;
  return decodeTable((await window.at(place.offset, place.bytes)).toString('utf8', 0, place.bytes));
}

/** The contents of a record that shardtool wrote, by its table. */
async function ownContentsOf(
  window: FileWindow,
  shard: string,
  features: ReadonlyMap<string, Feature>,
  table: ReadonlyMap<string, TableColumn>,
  offset: number,
): Promise<Omit<SamplePosition, 'offset' | 'bytes'>> {
  const refuse = (why: string) => damaged(shard, offset, `the record at byte ${offset} ${why}`);
  const sample = new SampleOfTable();
  for (const [name, column] of table) {
    const feature = features.get(name);
    if (feature === undefined) {
      if (!isField(column)) sample.value(column, null);
      continue;
    }
    const [value] = feature.values;
    if (feature.values.length !== 1 || (isField(column) && feature.kind !== 'bytes'))
      throw refuse(`has a feature "${name}" whose type or number of values differs from the table of the file`);
    if (feature.kind === 'numbers') sample.value(column, labelValue(value as number | bigint));
    else {
      const place = feature.values[0]!;
      if (isField(column)) sample.field(column, place);
      else sample.value(column, await textAt(window, place));
    }
  }
  return sample.read(refuse);
}

async function textAt(window: FileWindow, { offset, bytes }: { readonly offset: number; readonly bytes: number }) {
  return bytes === 0 ? '' : (await window.at(offset, bytes)).toString('utf8', 0, bytes);
}

/** The damage that `work` finds. The error of a truncated file is thrown, because nothing follows. */
async function troubleOf(work: () => Promise<void>): Promise<DamagedShardError | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!(error instanceof DamagedShardError) || error instanceof TruncatedShardError) throw error;
    return error;
  }
}
