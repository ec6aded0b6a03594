import type { z } from 'zod';

/** How a value does not match a schema: the path of the mismatch (`boxes.count`; empty for the value itself), and a description. */
export interface Misfit {
  readonly where: string;
  /** Continues the name of the value: `must be a number, and is "x"`. */
  readonly what: string;
}

/**
 * Parses a value by a schema. On a mismatch, throws the error that `wrong` builds from the first problem. The messages
 * of the schema library are not meant for end users.
 */
export function parseShape<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  wrong: (misfit: Misfit, cause: Error) => Error,
): z.output<Schema> {
  // Most schemas are used once in a process, so compiling them (zod's default) takes longer than the check.
  const result = schema.safeParse(value, { error: (issue) => wordsOf(issue as Issue), jitless: true });
  if (result.success) return result.data;
  const { path, message } = deepest(foremost(result.error.issues as Issue[]));
  throw wrong({ where: path.join('.'), what: message }, result.error);
}

/** A zod 4 issue, as far as it is used here. */
interface Issue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly input?: unknown;
  readonly expected?: string;
  readonly origin?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly inclusive?: boolean;
  readonly values?: readonly unknown[];
  readonly keys?: readonly string[];
  readonly errors?: readonly (readonly Issue[])[];
}

/** Picks the issue to report: an unknown name comes before a missing one, because it may be a misspelling of it. */
function foremost(issues: readonly Issue[]): Issue {
  return issues.find(({ code, path }) => code === 'unrecognized_keys' && path.length === 0) ?? issues[0]!;
}

/** For a union, the issue of the alternative that matches best: the one whose mismatch is deepest. */
function deepest(issue: Issue): Pick<Issue, 'path' | 'message'> {
  const inner = (issue.errors ?? []).flatMap(([first]) => (first === undefined ? [] : [deepest(first)]));
  const [best] = inner.filter(({ path }) => path.length > 0).sort((a, b) => b.path.length - a.path.length);
  return best === undefined ? issue : { path: [...issue.path, ...best.path], message: best.message };
}

function wordsOf({ code, input, expected, origin, minimum, maximum, inclusive, values, keys, errors }: Issue): string {
  const isList = origin === 'array' || origin === 'tuple';
  const isText = origin === 'string';
  switch (code) {
    case 'invalid_type':
      return mustBe(EXPECTED.get(expected ?? '') ?? expected ?? 'something else', input);
    case 'invalid_value':
      return mustBe(either((values ?? []).map(shownValue)), input);
    case 'too_small':
      if (isList || isText) return `must have at least ${minimum} ${isList ? 'entries' : 'characters'}`;
      return mustBe(`${inclusive === false ? 'more than' : 'at least'} ${minimum}`, input);
    case 'too_big':
      if (isList || isText) return `must have at most ${maximum} ${isList ? 'entries' : 'characters'}`;
      return mustBe(`${inclusive === false ? 'less than' : 'at most'} ${maximum}`, input);
    case 'unrecognized_keys':
      return `does not take ${(keys ?? []).map((key) => JSON.stringify(key)).join(', ')}`;
    case 'invalid_union':
      return mustBe(either([...new Set((errors ?? []).flatMap(choicesOf))]), input);
    default:
      return `has the wrong form: ${shownValue(input)}`;
  }
}

/** The values that a union allows, as described by one of its members. */
function choicesOf([first]: readonly Issue[]): string[] {
  const said = first === undefined ? null : /^(?:is missing; it )?must be (.*?)(?:, and is .*)?$/s.exec(first.message);
  return said === null ? [] : said[1]!.split(' or ');
}

const EXPECTED: ReadonlyMap<string, string> = new Map([
  ['string', 'text'],
  ['number', 'a number'],
  ['int', 'a whole number'],
  ['boolean', 'true or false'],
  ['object', 'an object'],
  ['record', 'an object'],
  ['array', 'a list'],
  ['tuple', 'a list'],
  ['undefined', 'left out'],
]);

/** Describes a value that is not `what`. */
export function mustBe(what: string, input: unknown): string {
  return input === undefined ? `is missing; it must be ${what}` : `must be ${what}, and is ${shownValue(input)}`;
}

export function either(choices: readonly string[]): string {
  return choices.length === 0 ? 'something else' : choices.join(' or ');
}

const SHOWN_LENGTH = 40;

/** A short form of a value for a message. Some values have no JSON. */
export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN_LENGTH ? text : `${text.slice(0, SHOWN_LENGTH)}...`;
}
