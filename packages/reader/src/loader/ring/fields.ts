/**
 * Types of the numbers in records in shared memory: an integer of 32 bits, or a float64, which holds whole numbers up
 * to 2^53.
 */
type FieldKind = 'float64' | 'int32' | 'uint32';

/** Offsets of the fields of a record. */
export interface RecordLayout<Name extends string> {
  /** For each field: its position in the first record, in units of its number type. */
  readonly places: Readonly<Record<Name, number>>;
  /** Length of a record in bytes, a multiple of 8. */
  readonly bytes: number;
}

/** Lays out the fields of a record: wider fields first, otherwise in the order of the table. */
export function layOut<Name extends string>(fields: Readonly<Record<Name, FieldKind>>): RecordLayout<Name> {
  const names = Object.keys(fields) as Name[];
  const long = names.filter((name) => fields[name] === 'float64');
  const short = names.filter((name) => fields[name] !== 'float64');
  const places = Object.fromEntries([
    ...long.map((name, i) => [name, i]),
    ...short.map((name, i) => [name, long.length * 2 + i]),
  ]) as Record<Name, number>;
  return { places, bytes: Math.ceil((long.length * 8 + short.length * 4) / 8) * 8 };
}
