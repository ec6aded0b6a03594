/** What the features of a `tf.train.Example` of other software are: image, class, key, fields and label columns. */
import { UnsupportedShardError } from '@shardtool/base';
import { SIGNATURE_BYTES } from '../../image/kinds.js';
import { jsonText } from '../../sample/exact-json.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { FileWindow } from '../bytes/file-window.js';
import {
  classColumnOf,
  fieldOfColumn,
  imageColumnOf,
  keyOf,
  labelOfColumn,
  labelValue,
} from '../columns/column-names.js';
import { isClass } from '../columns/value-columns.js';
import type { ChosenColumns, FieldPosition, SamplePosition } from '../layout.js';
import { ExampleError, type Feature, readExample } from './example.js';
import { HEAD_BYTES } from './records.js';

/** Maximum length of a key. */
const MOST_KEY_BYTES = 4096;
/** Names of byte features that hold text, such as those of TensorFlow's ImageNet records. */
const IS_TEXT = /(text|caption|name|format|colorspace|synset|url|source_id|sha256|title|description)$/i;

export async function exampleAt(
  window: FileWindow,
  shard: string,
  start: number,
  bytes: number,
): Promise<ReadonlyMap<string, Feature>> {
  try {
    return await readExample(window, start, start + bytes);
  } catch (cause) {
    if (!(cause instanceof ExampleError)) throw cause;
    const message = `${shard}: the record at byte ${start - HEAD_BYTES} is not a readable tf.train.Example (${cause.message}), the only kind of record that shardtool reads.`;
    throw new UnsupportedShardError({ shard, offset: start - HEAD_BYTES }, message, { cause });
  }
}

/** The key in a feature, a text or one number. */
export async function keyAt(
  window: FileWindow,
  shard: string,
  features: ReadonlyMap<string, Feature>,
  name: string,
  offset: number,
): Promise<string> {
  const refuse = (why: string) =>
    new UnsupportedShardError(
      { shard, offset },
      `${shard}: in the record at byte ${offset} the feature "${name}" ${why}, so it cannot be the key; choose another feature.`,
    );
  const feature = features.get(name);
  if (feature === undefined) throw noSuchFeature(shard, offset, name, features);
  if (feature.values.length !== 1) throw refuse(`has ${feature.values.length} values`);
  if (feature.kind === 'numbers') return keyOf(String(feature.values[0]), refuse);
  const { offset: at, bytes } = feature.values[0]!;
  if (bytes > MOST_KEY_BYTES) throw refuse(`has ${bytes} bytes`);
  return keyOf(bytes === 0 ? '' : (await window.at(at, bytes)).toString('utf8', 0, bytes), refuse);
}

export async function contentsOf(
  window: FileWindow,
  shard: string,
  key: string,
  features: ReadonlyMap<string, Feature>,
  naming: Naming,
): Promise<Pick<SamplePosition, 'fields' | 'cls' | 'labels'>> {
  const fields: FieldPosition[] = [];
  const labels = new Map<string, ColumnValue>();
  const { image, cls: classFeature } = naming.of(features);
  let cls = -1;
  for (const [name, feature] of features) {
    if (feature.kind === 'numbers') {
      const value = labelOf(feature.values);
      if (name === classFeature && isClass(value)) cls = value;
      else labels.set(labelOfColumn(name), value);
      continue;
    }
    for (const [i, place] of feature.values.entries()) {
      const peek = Math.min(place.bytes, SIGNATURE_BYTES);
      const first = peek === 0 ? Buffer.alloc(0) : (await window.at(place.offset, peek)).subarray(0, peek);
      const numbered = i === 0 ? name : `${name}.${i}`;
      const field = fieldOfColumn(numbered, first, numbered === image, IS_TEXT.test(name) ? 'txt' : 'bin');
      if (fields.some((other) => other.name === field)) {
        const message = `${shard}: in sample ${key} two features would both be the field "${field}"; rename one of them.`;
        throw new UnsupportedShardError({ shard, key, offset: place.offset }, message);
      }
      fields.push({ name: field, ...place });
    }
  }
  return { fields, cls, labels };
}

/** Null, the single number, or all numbers as JSON. */
function labelOf(values: readonly (number | bigint)[]): ColumnValue {
  if (values.length === 0) return null;
  if (values.length === 1) return labelValue(values[0]!);
  return jsonText(values);
}

/** Which features are the image and the class. Looked up again if the names change. */
export class Naming {
  readonly #shard: string;
  readonly #chosen: ChosenColumns;
  #names = '';
  #found: { readonly image: string | undefined; readonly cls: string | undefined } = {
    image: undefined,
    cls: undefined,
  };

  constructor(shard: string, chosen: ChosenColumns) {
    this.#shard = shard;
    this.#chosen = chosen;
  }

  of(features: ReadonlyMap<string, Feature>) {
    const names = [...features.keys()].sort().join('\0');
    if (names === this.#names) return this.#found;
    const ofKind = (kind: Feature['kind']) =>
      [...features]
        .filter(([, feature]) => feature.kind === kind)
        .map(([name]) => name)
        .sort();
    const { image, label } = this.#chosen;
    this.#check(image, 'bytes', features);
    this.#check(label, 'numbers', features);
    this.#names = names;
    this.#found = { image: image ?? imageColumnOf(ofKind('bytes')), cls: label ?? classColumnOf(ofKind('numbers')) };
    return this.#found;
  }

  #check(name: string | undefined, kind: Feature['kind'], features: ReadonlyMap<string, Feature>): void {
    if (name === undefined) return;
    const feature = features.get(name);
    if (feature === undefined) throw noSuchFeature(this.#shard, 0, name, features);
    if (feature.kind === kind) return;
    const message = `${this.#shard}: its feature "${name}" holds ${feature.kind}, so it cannot be the ${kind === 'bytes' ? 'image' : 'class number'}; choose another feature.`;
    throw new UnsupportedShardError({ shard: this.#shard }, message);
  }
}

function noSuchFeature(
  shard: string,
  offset: number,
  name: string,
  features: ReadonlyMap<string, Feature>,
): UnsupportedShardError {
  const there = [...features.keys()].join(', ');
  const message = `${shard}: the record at byte ${offset} has no feature "${name}"; its features are ${there}.`;
  return new UnsupportedShardError({ shard, offset }, message);
}
