import type { FieldPosition, SamplePosition } from '@shardtool/format';
import type { Evidence } from './evidence.js';

/** A sample that was in the shard, as far as it is known. */
export interface ExpectedSample {
  readonly key: string;
  /** In the index; -1 where it is not known. */
  readonly row: number;
  readonly fields: readonly ExpectedField[];
}

export interface ExpectedField {
  readonly name: string;
  /** Where its bytes may be, the likeliest place first. */
  readonly places: readonly FieldPosition[];
  /** Of its payload; null where nobody knows it any more. */
  readonly crc32: number | null;
}

/**
 * The samples that a shard is to have, in their order: those of its index, then those that stand in the shard and in no
 * row of it. Where the index has lost its keys, those that were found.
 */
export function expectedSamples(evidence: Evidence, requiredFields: readonly string[]): ExpectedSample[] {
  const { index } = evidence;
  const expected = (index.key ?? []).map((key, row) => expectedSample(evidence, key, row, requiredFields));
  const known = new Set(index.key);
  const taken = new Set(
    expected.flatMap(({ fields }) => fields.flatMap(({ places }) => places.map(({ offset }) => offset))),
  );
  for (const { key, row, position } of inOrder(evidence)) {
    if (known.has(key)) continue;
    // A damaged key leads to what another row has.
    if (position.fields.some(({ offset }) => taken.has(offset))) continue;
    expected.push(expectedSample(evidence, key, row, requiredFields));
  }
  return expected;
}

/** What was found, by the rows of the index as far as their places tell them; the others come last. */
function inOrder({ index, found }: Evidence): { key: string; row: number; position: SamplePosition }[] {
  const rowAt = new Map(Array.from(index.offset ?? [], (offset, row) => [offset, row]));
  const rowOf = (position: SamplePosition) => (index.key === undefined ? (rowAt.get(position.offset) ?? -1) : -1);
  const samples = Array.from(found, ([key, position]) => ({ key, row: rowOf(position), position }));
  return [
    ...samples.filter(({ row }) => row !== -1).sort((a, b) => a.row - b.row),
    ...samples.filter(({ row }) => row === -1),
  ];
}

function expectedSample(
  { index, found }: Evidence,
  key: string,
  row: number,
  requiredFields: readonly string[],
): ExpectedSample {
  const position = found.get(key);
  const names = new Set<string>();
  // Where no column says which fields a sample has, it has those that were found and those that every sample has.
  let isSure = row >= 0 && index.fields.size > 0;
  for (const [name, { offset }] of index.fields) {
    if (row >= 0 && offset !== undefined && offset[row]! >= 0) names.add(name);
    if (offset === undefined) isSure = false;
  }
  if (!isSure) for (const name of [...requiredFields, ...fieldNames(position)]) names.add(name);
  const fields = [...names].sort().map((name) => expectedField(index, name, row, position));
  return { key, row, fields };
}

function fieldNames(position: SamplePosition | undefined): string[] {
  return (position?.fields ?? []).map(({ name }) => name);
}

function expectedField(
  index: Evidence['index'],
  name: string,
  row: number,
  position: SamplePosition | undefined,
): ExpectedField {
  const { offset, bytes, crc32, msgpack } = (row >= 0 && index.fields.get(name)) || {};
  const places: FieldPosition[] = [];
  if (offset !== undefined && bytes !== undefined) {
    places.push({ name, offset: offset[row]!, bytes: bytes[row]!, msgpack: msgpack?.[row] === 1 });
  }
  const found = position?.fields.find((field) => field.name === name);
  if (found !== undefined && !places.some((place) => isSamePlace(place, found))) places.push(found);
  return { name, places, crc32: crc32?.[row] ?? null };
}

function isSamePlace(a: FieldPosition, b: FieldPosition): boolean {
  return a.offset === b.offset && a.bytes === b.bytes && (a.msgpack ?? false) === (b.msgpack ?? false);
}
