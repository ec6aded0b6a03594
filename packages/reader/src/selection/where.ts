import { didYouMean } from '@shardtool/base';
import type { ColumnValue, ShardIndex } from '@shardtool/format';
import { INSPECT_PREFIX } from '../dataset/inspection-columns.js';
import { type Comparison, type Expression, type Operand, parseWhere } from './where-parser.js';
import { WhereError } from './where-tokens.js';

/** Whether a row of an index is selected. */
export type RowPredicate = (row: number) => boolean;

/** A checked expression, to be bound to the index of each shard. */
export type Where = (index: ShardIndex) => RowPredicate;

/**
 * An expression over the columns of an index: key, source, bytes, width, height, orientation, cls, class (the name),
 * and label columns. Nothing is evaluated as code. A missing value is null: it equals only null, and is neither smaller
 * nor larger than any value. Throws {@link WhereError} for an invalid expression; binding it throws for an unknown
 * column, or a column with values of another type.
 */
export function compileWhere(text: string, classNames: readonly string[]): Where {
  const expression = parseWhere(text);
  return (index) => bind(expression, { text, classNames, index });
}

/** Returns the names of the columns that an expression compares. Throws {@link WhereError} if the expression is invalid. */
export function namesInWhere(text: string): ReadonlySet<string> {
  return new Set(operandsIn(parseWhere(text)).flatMap((operand) => (operand.kind === 'column' ? operand.name : [])));
}

function operandsIn(expression: Expression): readonly Operand[] {
  switch (expression.kind) {
    case 'and':
    case 'or':
      return expression.parts.flatMap(operandsIn);
    case 'not':
      return operandsIn(expression.part);
    case 'compare':
      return [expression.left, expression.right];
    case 'in':
    case 'flag':
      return [expression.operand];
  }
}

interface Scope {
  readonly text: string;
  readonly classNames: readonly string[];
  readonly index: ShardIndex;
}

type ValueType = 'string' | 'number' | 'boolean' | 'null';

/** An operand whose column is looked up. A column that is null throughout has the type `null`. */
interface Bound {
  readonly type: ValueType;
  get(row: number): ColumnValue;
}

function bind(expression: Expression, scope: Scope): RowPredicate {
  switch (expression.kind) {
    case 'and': {
      const parts = expression.parts.map((part) => bind(part, scope));
      return (row) => parts.every((part) => part(row));
    }
    case 'or': {
      const parts = expression.parts.map((part) => bind(part, scope));
      return (row) => parts.some((part) => part(row));
    }
    case 'not': {
      const part = bind(expression.part, scope);
      return (row) => !part(row);
    }
    case 'flag':
      return bindFlag(expression.operand, scope);
    case 'in':
      return bindIn(expression, scope);
    case 'compare':
      return bindComparison(expression, scope);
  }
}

function bindFlag(operand: Operand, scope: Scope): RowPredicate {
  const { type, get } = bindOperand(operand, scope);
  if (type === 'boolean' || (type === 'null' && operand.kind === 'column')) return (row) => get(row) === true;
  const remedy =
    operand.kind === 'column' ? `compare ${operand.name} (${type}) with something` : 'a condition is missing';
  throw new WhereError(scope.text, operand.at, remedy);
}

function bindIn(expression: Expression & { kind: 'in' }, scope: Scope): RowPredicate {
  const { type, get } = bindOperand(expression.operand, scope);
  for (const literal of expression.values) {
    checkTypes(type, typeOf(literal.value), literal, scope);
    checkClassName(expression.operand, literal, scope);
  }
  const values = new Set<ColumnValue>(expression.values.map(({ value }) => value));
  return (row) => values.has(get(row));
}

function bindComparison(expression: Expression & { kind: 'compare' }, scope: Scope): RowPredicate {
  const { operator } = expression;
  const left = bindOperand(expression.left, scope);
  const right = bindOperand(expression.right, scope);
  const blamed = expression.right.kind === 'column' ? expression.left : expression.right;
  checkTypes(left.type, right.type, blamed, scope);
  checkClassName(expression.left, expression.right, scope);
  checkClassName(expression.right, expression.left, scope);
  if (operator === '=') return (row) => left.get(row) === right.get(row);
  if (operator === '!=') return (row) => left.get(row) !== right.get(row);
  for (const operand of [expression.left, expression.right]) {
    const isOrdered = operand.kind === 'column' || (typeof operand.value !== 'boolean' && operand.value !== null);
    if (!isOrdered) throw new WhereError(scope.text, operand.at, `${operand.value} can only be compared with = and !=`);
  }
  const isOrdered = ORDERED[operator];
  return (row) => {
    const a = left.get(row);
    const b = right.get(row);
    return a !== null && b !== null && isOrdered(a, b);
  };
}

const ORDERED: Record<
  Exclude<Comparison, '=' | '!='>,
  (a: NonNullable<ColumnValue>, b: NonNullable<ColumnValue>) => boolean
> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};

function bindOperand(operand: Operand, scope: Scope): Bound {
  if (operand.kind === 'literal') return { type: typeOf(operand.value), get: () => operand.value };
  const column = columnOf(operand.name, scope);
  if (column !== undefined) return column;
  throw new WhereError(
    scope.text,
    operand.at,
    `there is no column "${operand.name}"${columnHint(operand.name, scope)}`,
  );
}

function columnHint(name: string, { index }: Scope): string {
  const field = [...index.fields.keys()].find((one) => name.startsWith(`${one}.`));
  if (field !== undefined) {
    return (
      ` (the content of the field "${field}" is not a column of the index yet: "shardtool index FOLDER --columns ${name}" ` +
      'makes it one)'
    );
  }
  if (name.startsWith(INSPECT_PREFIX)) {
    return ' ("shardtool inspect DATASET" makes the columns that begin with "inspect."; run it again when shards were added)';
  }
  const names = [...COLUMNS.keys(), ...index.columns.keys()];
  const near = didYouMean(name, names).replace(/^; /, '');
  return ` (${near}${near === '' ? '' : ' '}there are ${names.join(', ')}; put text in quotes)`;
}

/** Whether the index of a shard has no image sizes, because its images have not been read. */
export function isUnread({ samples, orientation, width }: ShardIndex): boolean {
  return samples > 0 && orientation.every((one) => one === 0) && width.every((one) => one === 0);
}

/** A column whose values come from the headers of images. */
function sizeColumn(name: 'width' | 'height' | 'orientation', { index, text }: Scope): Bound {
  if (isUnread(index)) {
    const what = `the ${name} of these images is not known, because their headers have not been read. Run "shardtool index", which stores it (pack a plain folder first)`;
    throw new WhereError(text, text.indexOf(name), what);
  }
  return { type: 'number', get: (row) => index[name][row]! };
}

/** The columns that every index has. */
const COLUMNS = new Map<string, (scope: Scope) => Bound>([
  ['key', ({ index }) => ({ type: 'string', get: (row) => index.key[row]! })],
  ['source', ({ index }) => ({ type: 'string', get: (row) => index.source[row]! })],
  ['bytes', ({ index }) => ({ type: 'number', get: (row) => index.bytes[row]! })],
  ['width', (scope) => sizeColumn('width', scope)],
  ['height', (scope) => sizeColumn('height', scope)],
  ['orientation', (scope) => sizeColumn('orientation', scope)],
  ['cls', ({ index }) => ({ type: 'number', get: (row) => index.cls[row]! })],
  ['class', ({ index, classNames }) => ({ type: 'string', get: (row) => classNames[index.cls[row]!] ?? null })],
]);

function columnOf(name: string, scope: Scope): Bound | undefined {
  const known = COLUMNS.get(name);
  if (known !== undefined) return known(scope);
  const values = scope.index.columns.get(name);
  if (values === undefined) return undefined;
  const sample = values.find((value) => value !== null) ?? null;
  return { type: typeOf(sample), get: (row) => values[row] ?? null };
}

/** Values of two types are never equal, so such a comparison is an error, not an empty selection. */
function checkTypes(left: ValueType, right: ValueType, blamed: Operand, scope: Scope): void {
  if (left === right || left === 'null' || right === 'null') return;
  const what = blamed.kind === 'column' ? `column "${blamed.name}"` : JSON.stringify(blamed.value);
  const isClass = blamed.kind === 'literal' && scope.classNames.includes(String(blamed.value));
  const hint = isClass ? `; the name of a class is in the column "class"` : '';
  throw new WhereError(scope.text, blamed.at, `a ${left} is compared with a ${right} (${what})${hint}`);
}

function checkClassName(column: Operand, literal: Operand, { text, classNames }: Scope): void {
  if (column.kind !== 'column' || column.name !== 'class' || literal.kind !== 'literal') return;
  if (literal.value === null || classNames.includes(String(literal.value))) return;
  throw new WhereError(
    text,
    literal.at,
    `there is no class ${JSON.stringify(literal.value)}${didYouMean(String(literal.value), classNames)}`,
  );
}

function typeOf(value: ColumnValue): ValueType {
  return value === null ? 'null' : (typeof value as ValueType);
}
