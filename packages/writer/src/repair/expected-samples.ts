import { range } from '@shardtool/base';
import {
  type FieldPosition,
  packedName,
  type SalvagedField,
  type SalvagedIndex,
  type SamplePosition,
} from '@shardtool/format';
import type { Evidence } from './evidence.js';
import { joined } from './evidence.js';

/** A sample that was in the shard, as far as it is known. */
export interface ExpectedSample {
  readonly key: string;
  /** True if the key is in the index, or follows from the path of the image. */
  readonly isKeyProven: boolean;
  /** Row in the index; -1 if it is not known. */
  readonly row: number;
  readonly fields: readonly ExpectedField[];
}

export interface ExpectedField {
  readonly name: string;
  /**
   * Possible positions of its bytes, the most likely first. Without a crc32 there is at most one, which must be
   * certain.
   */
  readonly places: readonly FieldPosition[];
  /** crc32 of its payload; null if it is not known. */
  readonly crc32: number | null;
  /** Length of its payload; null if it is not known. */
  readonly bytes: number | null;
  /** True if it is stored as an integer, so that its payload is the integer's digits. */
  readonly isInteger: boolean;
}

/** A sample whose key is lost or cannot be trusted. */
export interface LostSample {
  readonly key: string;
  readonly row: number;
  readonly reason: string;
}

export interface Expectation {
  /** The samples, in the order of the index where the index is known. */
  readonly samples: readonly ExpectedSample[];
  readonly lost: readonly LostSample[];
}

/** Returns the samples that a damaged shard should have. `recorded` is their number; null if it is not known. */
export function expectedSamples(
  evidence: Evidence,
  found: readonly SamplePosition[],
  requiredFields: readonly string[],
  recorded: number | null,
): Expectation {
  const { index } = evidence;
  const finding = { evidence, requiredFields };
  return index.key === undefined
    ? withoutKeys(index, found, finding, recorded)
    : withKeys(index, index.key, found, finding);
}

interface Finding {
  readonly evidence: Evidence;
  readonly requiredFields: readonly string[];
}

/** Takes the samples of the index. Other samples in the file are damaged or from another pack. */
function withKeys(
  index: SalvagedIndex,
  keys: readonly string[],
  found: readonly SamplePosition[],
  finding: Finding,
): Expectation {
  const rowOfKey = new Map(keys.map((key, row) => [key, row]));
  const rowAt = rowsByPlace(index);
  const byKey = new Map<number, SamplePosition>();
  const byPlace = new Map<number, SamplePosition>();
  const lost: LostSample[] = [];
  for (const position of found) {
    const ofKey = rowOfKey.get(position.key);
    const ofPlace = rowAt(position);
    if (ofKey !== undefined) byKey.set(ofKey, position);
    else if (ofPlace === -1) {
      lost.push({ key: position.key, row: -1, reason: 'is in the shard, but not in its index' });
    }
    if (ofPlace !== -1) byPlace.set(ofPlace, position);
  }
  const samples = keys.map((key, row): ExpectedSample => {
    const positions = [byKey.get(row), byPlace.get(row)].filter((position) => position !== undefined);
    return { key, isKeyProven: true, row, fields: expectedFields(row, positions, finding) };
  });
  return { samples, lost };
}

/** Takes the samples found in the file. The remaining columns of the index are matched by position. */
function withoutKeys(
  index: SalvagedIndex,
  found: readonly SamplePosition[],
  finding: Finding,
  recorded: number | null,
): Expectation {
  const rowAt = rowsByPlace(index);
  const rows = new Map<number, SamplePosition>();
  const others: SamplePosition[] = [];
  for (const position of found) {
    const row = rowAt(position);
    const before = rows.get(row);
    if (row === -1) others.push(position);
    else rows.set(row, before === undefined ? position : joined(before, position));
  }
  const expected = (position: SamplePosition, row: number): ExpectedSample => ({
    key: position.key,
    isKeyProven: row >= 0 && packedName(index.source?.[row] ?? '')?.key === position.key,
    row,
    fields: expectedFields(row, [position], finding),
  });
  const samples = [
    ...[...rows].sort(([a], [b]) => a - b).map(([row, position]) => expected(position, row)),
    ...others.map((position) => expected(position, -1)),
  ];
  const lost: LostSample[] = [];
  const total = index.samples > 0 ? index.samples : (recorded ?? 0);
  const unknown = range(index.samples).filter((row) => !rows.has(row));
  for (let i = 0; samples.length + lost.length < total; i++) {
    const row = others.length === 0 ? (unknown[i] ?? -1) : -1;
    lost.push({ key: '', row, reason: 'nothing of this sample is left, not even its key' });
  }
  return { samples, lost };
}

/** Returns a function that finds the row of the index for a sample at an exact position; -1 if no column has it. */
function rowsByPlace({ offset, fields }: SalvagedIndex): (position: SamplePosition) => number {
  const rowAt = new Map<number, number>();
  for (const [row, at] of offset?.entries() ?? []) rowAt.set(at, row);
  const rowOfField = new Map<string, Map<number, number>>();
  for (const [name, { offset: places }] of fields) {
    if (places !== undefined) rowOfField.set(name, new Map(Array.from(places, (at, row) => [at, row])));
  }
  return (position) => {
    for (const { name, offset: at } of position.fields) {
      const row = rowOfField.get(name)?.get(at);
      if (row !== undefined) return row;
    }
    return rowAt.get(position.offset) ?? -1;
  };
}

/**
 * Returns the fields of a sample by name. If no column lists them: the fields that were found, and those that every
 * sample has.
 */
function expectedFields(row: number, positions: readonly SamplePosition[], finding: Finding): ExpectedField[] {
  const { evidence, requiredFields } = finding;
  const names = new Set<string>();
  let isSure = row >= 0 && evidence.index.fields.size > 0;
  for (const [name, { present }] of evidence.index.fields) {
    if (present === undefined) isSure = false;
    else if (row >= 0 && present[row] === 1) names.add(name);
  }
  if (!isSure) {
    const found = positions.flatMap(({ fields }) => fields.map(({ name }) => name));
    for (const name of [...requiredFields, ...found]) {
      if (row < 0 || evidence.index.fields.get(name)?.present === undefined) names.add(name);
    }
  }
  return [...names].sort().map((name) => expectedField(evidence, name, row, positions));
}

function expectedField(
  { index, isOfRecordedSize }: Evidence,
  name: string,
  row: number,
  positions: readonly SamplePosition[],
): ExpectedField {
  const known: SalvagedField = (row >= 0 && index.fields.get(name)) || {};
  const at = { offset: known.offset?.[row], bytes: known.bytes?.[row], msgpack: known.msgpack?.[row] };
  const found = positions.flatMap(({ fields }) => fields.filter((field) => field.name === name));
  const crc32 = known.crc32?.[row] ?? null;
  const bytes = at.msgpack === 0 ? (at.bytes ?? null) : null;
  const places = crc32 === null ? certainPlace(name, at, found, isOfRecordedSize) : possiblePlaces(name, at, found);
  return { name, places, crc32, bytes, isInteger: at.msgpack === 1 };
}

/** What the verified columns of the index state about a position; undefined if a column is lost. */
interface KnownPlace {
  readonly offset: number | undefined;
  readonly bytes: number | undefined;
  readonly msgpack: number | undefined;
}

/** Returns all positions that may be tried, since the checksum decides. */
function possiblePlaces(name: string, at: KnownPlace, found: readonly FieldPosition[]): FieldPosition[] {
  const places: FieldPosition[] = [];
  const { offset, bytes } = at;
  if (offset !== undefined && bytes !== undefined) {
    const flags = at.msgpack === undefined ? [0, 1] : [at.msgpack];
    for (const flag of flags) places.push({ name, offset, bytes, msgpack: flag === 1 });
  }
  for (const place of found) if (!places.some((other) => isSamePlace(other, place))) places.push(place);
  return places;
}

/**
 * Without a checksum, a position counts only in two cases. Either the index has all of it, and nothing in the file has
 * moved or the shard states the same position. Or only the shard states it, and nothing that is known contradicts it.
 */
function certainPlace(
  name: string,
  at: KnownPlace,
  found: readonly FieldPosition[],
  isOfRecordedSize: boolean,
): FieldPosition[] {
  const { offset, bytes, msgpack } = at;
  const agreeing = found.filter(
    (place) =>
      (offset ?? place.offset) === place.offset &&
      (bytes ?? place.bytes) === place.bytes &&
      (msgpack === undefined || (msgpack === 1) === (place.msgpack ?? false)),
  );
  if (agreeing.length > 0) return agreeing.slice(0, 1);
  const isWhole = offset !== undefined && bytes !== undefined && msgpack !== undefined;
  return isWhole && isOfRecordedSize ? [{ name, offset, bytes, msgpack: msgpack === 1 }] : [];
}

function isSamePlace(a: FieldPosition, b: FieldPosition): boolean {
  return a.offset === b.offset && a.bytes === b.bytes && (a.msgpack ?? false) === (b.msgpack ?? false);
}
