import { optionName, SampleDecodeError, type Sentence, sentence } from '@shardtool/base';
import { type NpyArray, readNpy } from '@shardtool/format';
import type { GivenAnnotations } from '../transform/annotations.js';
import type { AnnotationSource, BoxFormat, CheckedAnnotations } from './options.js';
import { nameOfSource } from './sources.js';

/** Fewest numbers of a polygon: x and y of three corners. */
const MIN_NUMBERS = 6;

/** Parses the annotations of a sample. Throws {@link SampleDecodeError} if they are invalid; the reason names the field, the object and the fault. */
export function readAnnotations(
  options: CheckedAnnotations,
  fields: Readonly<Record<string, Uint8Array>>,
): GivenAnnotations {
  const { boxes, labels, keypoints, polygons, maxBoxes } = options;
  const values = valuesIn(fields);
  const lists = {
    boxes: boxes && rowsOf(values(boxes), boxes, 4),
    keypoints: keypoints && rowsOf(values(keypoints), keypoints, null),
    polygons: polygons && listOf(values(polygons), polygons),
    labels: labels && listOf(values(labels), labels),
  };
  const [first, ...others] = Object.entries(lists).flatMap(([name, list]) =>
    list === undefined ? [] : [{ name, list }],
  );
  const count = first!.list.length;
  const other = others.find(({ list }) => list.length !== count);
  if (other !== undefined) {
    throw bad(`it has ${count} ${first!.name} but ${other.list.length} ${other.name}: both must have the same number`);
  }
  if (count > maxBoxes) {
    throw bad(
      sentence`it has ${count} objects, but the option ${optionName('annotations.maxBoxes')} is ${maxBoxes}: raise it`,
    );
  }
  return {
    count,
    boxes: boxes === undefined ? null : cornersOf(lists.boxes!, boxes.format, boxes),
    labels: labels === undefined ? null : Int32Array.from(lists.labels!, (value, i) => labelOf(value, i, labels)),
    keypoints: keypoints === undefined ? null : keypointsOf(lists.keypoints!, keypoints),
    polygons: polygons === undefined ? null : polygonsOf(lists.polygons!, polygons, options.maxPoints),
    normalized: {
      boxes: boxes?.normalized ?? false,
      keypoints: keypoints?.normalized ?? false,
      polygons: polygons?.normalized ?? false,
    },
  };
}

function bad(reason: string | Sentence): SampleDecodeError {
  return new SampleDecodeError({}, reason);
}

function nameOf(source: AnnotationSource): string {
  const { path, columns } = source;
  if (columns !== undefined) return `its ${columns.length === 1 ? 'column' : 'columns'} "${nameOfSource(source)}"`;
  return path === undefined ? `its field "${source.field}"` : `"${path}" of its field "${source.field}"`;
}

/** Returns a function that looks up the value of a source. Each field is parsed once. */
function valuesIn(fields: Readonly<Record<string, Uint8Array>>): (source: AnnotationSource) => unknown {
  const parsed = new Map<string, unknown>();
  return (source) => {
    const { path } = source;
    const field = nameOfSource(source);
    if (!parsed.has(field)) parsed.set(field, parse(field, fields[field]!));
    const value = path === undefined ? parsed.get(field) : follow(parsed.get(field), path.split('.'));
    if (value === undefined || value === null) throw bad(`${nameOf(source)} is missing`);
    return value;
  };
}

function parse(field: string, bytes: Uint8Array): unknown {
  try {
    if (field === 'npy' || field.endsWith('.npy')) return rowsOfArray(readNpy(bytes));
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch (cause) {
    throw new SampleDecodeError(
      {},
      `its field "${field}" does not have the format of its extension (${(cause as Error).message})`,
      {
        cause,
      },
    );
  }
}

/** The rows of a NumPy array, each flattened to one list. */
function rowsOfArray({ data, shape, fortranOrder }: NpyArray): unknown[] {
  const [rows = 0, ...each] = shape;
  const length = each.reduce((product, size) => product * size, 1);
  if (shape.length === 0 || (fortranOrder && shape.length > 2) || data.length !== rows * length) {
    throw new Error('this shape, dtype or memory order is not supported: save the array as float32 in C order');
  }
  const at = (row: number, i: number) => Number(data[fortranOrder ? i * rows + row : row * length + i]);
  if (shape.length === 1) return Array.from({ length: rows }, (_, row) => at(row, 0));
  return Array.from({ length: rows }, (_, row) => Array.from({ length }, (_value, i) => at(row, i)));
}

/** Follows a path. At a list, it is followed in each item and the result is a list. */
function follow(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value;
  if (Array.isArray(value)) return value.map((item) => follow(item, [name, ...rest]));
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return follow((value as Readonly<Record<string, unknown>>)[name], rest);
}

function listOf(value: unknown, source: AnnotationSource): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw bad(`${nameOf(source)} is not a list`);
}

/** The value as lists of finite numbers. Each has `length` numbers, or any number if `length` is null. */
function rowsOf(value: unknown, source: AnnotationSource, length: number | null): readonly (readonly number[])[] {
  return listOf(value, source).map((row, i) => {
    const numbers = Array.isArray(row) ? row.flat() : null;
    if (numbers === null || (length !== null && numbers.length !== length)) {
      throw bad(
        `item ${i} of ${nameOf(source)} is not ${length === null ? 'a list of' : `a list of ${length}`} numbers`,
      );
    }
    checkFinite(numbers, i, source);
    return numbers;
  });
}

function checkFinite(numbers: readonly unknown[], i: number, source: AnnotationSource): void {
  if (numbers.every((number) => typeof number === 'number' && Number.isFinite(number))) return;
  throw bad(`item ${i} of ${nameOf(source)} contains a value that is not a finite number`);
}

function cornersOf(rows: readonly (readonly number[])[], format: BoxFormat, source: AnnotationSource): Float64Array {
  const corners = new Float64Array(rows.length * 4);
  rows.forEach((row, i) => {
    const [a, b, c, d] = row as readonly [number, number, number, number];
    if (format === 'xyxy' ? c < a || d < b : c < 0 || d < 0) {
      const fault = format === 'xyxy' ? 'its corners are swapped' : 'its size is negative';
      throw bad(`box ${i} of ${nameOf(source)}, [${row.join(', ')}] as ${format}, is invalid: ${fault}`);
    }
    if (format === 'xyxy') corners.set(row, i * 4);
    else if (format === 'xywh') corners.set([a, b, a + c, b + d], i * 4);
    else corners.set([a - c / 2, b - d / 2, a + c / 2, b + d / 2], i * 4);
  });
  return corners;
}

function labelOf(value: unknown, i: number, source: AnnotationSource): number {
  const [label] = [value].flat();
  if (typeof label === 'number' && Number.isInteger(label) && Math.abs(label) < 2 ** 31) return label;
  throw bad(`label ${i} of ${nameOf(source)}, ${JSON.stringify(value)}, is not a class number`);
}

function keypointsOf(
  rows: readonly (readonly number[])[],
  source: AnnotationSource & { readonly count: number },
): NonNullable<GivenAnnotations['keypoints']> {
  const { count: perObject } = source;
  const values = new Float64Array(rows.length * perObject * 3);
  rows.forEach((row, i) => {
    const each = row.length / perObject;
    if (each !== 2 && each !== 3) {
      throw bad(
        `item ${i} of ${nameOf(source)} has ${row.length} numbers, but ${perObject} keypoints need 2 or 3 numbers each: set ` +
          'annotations.keypoints.count',
      );
    }
    for (let point = 0; point < perObject; point++) {
      const at = (i * perObject + point) * 3;
      values[at] = row[point * each]!;
      values[at + 1] = row[point * each + 1]!;
      values[at + 2] = each === 3 ? row[point * 3 + 2]! : 2;
    }
  });
  return { perObject, values };
}

function polygonsOf(objects: readonly unknown[], source: AnnotationSource, maxPoints: number): Float64Array[][] {
  let points = 0;
  return objects.map((object, i) => {
    const rings = ringsOf(object).map((ring) => {
      const numbers = ring.flat();
      if (numbers.length < MIN_NUMBERS || numbers.length % 2 !== 0) {
        throw bad(
          `polygon ${i} of ${nameOf(source)} has ${numbers.length} numbers, but it needs x and y of at least three corners`,
        );
      }
      checkFinite(numbers, i, source);
      points += numbers.length / 2;
      return Float64Array.from(numbers as number[]);
    });
    if (points <= maxPoints) return rings;
    throw bad(
      sentence`its polygons have more than ${maxPoints} corners, the limit of the option ${optionName('annotations.maxPoints')}: raise it`,
    );
  });
}

/** The rings of an object: one polygon (a flat list of numbers or a list of pairs) or a list of polygons. Other values, such as RLE of COCO, have no rings. */
function ringsOf(object: unknown): readonly (readonly unknown[])[] {
  if (!Array.isArray(object) || object.length === 0) return [];
  const [first] = object as readonly unknown[];
  if (!Array.isArray(first)) return [object];
  const isPair = first.length === 2 && object.every((point) => Array.isArray(point) && !Array.isArray(point[0]));
  return isPair ? [object] : (object as readonly (readonly unknown[])[]);
}
