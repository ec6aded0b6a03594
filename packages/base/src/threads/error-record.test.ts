import { expect, test } from 'vitest';
import * as errors from '../errors.js';
import { TruncatedShardError } from '../errors.js';
import { recordError, reviveError } from './error-record.js';

/** Sends an error through the clone to another thread. */
function sent(error: unknown, more?: Record<string, unknown>): Error {
  return reviveError(structuredClone(recordError(error)), more);
}

type AnyError = new (fields: object, message: string, options?: object) => errors.ShardtoolError;
const classes = Object.entries(errors).filter(
  ([, value]) => typeof value === 'function' && value.prototype instanceof Error,
) as unknown as [string, AnyError][];

test.each(classes)('a %s from another thread keeps its class, fields, message and stack', (_, Class) => {
  const fields = { shard: 'a.tar', key: 'k', offset: 3, path: 'p', reason: 'r', found: 2, known: 1, field: 'jpg' };
  const error = new Class({ ...fields, expected: 1, actual: 2, trouble: 'cut' }, 'it is so');
  const revived = sent(error);
  expect(revived).toBeInstanceOf(Class);
  expect({ ...revived }).toEqual({ ...error });
  expect([revived.name, revived.message, revived.stack]).toEqual([error.name, error.message, error.stack]);
});

test('causes, built-in errors and errors of other packages keep their class, and any other thrown value becomes an Error', () => {
  class TapeError extends errors.ShardtoolError {
    static override readonly kind: string = 'TapeError';
  }
  const system = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  const error = sent(new TapeError({ path: 'x' }, 'torn', { cause: new RangeError('far', { cause: system }) }), {
    TapeError,
  });
  expect(error).toBeInstanceOf(TapeError);
  expect(error.cause).toBeInstanceOf(RangeError);
  expect((error.cause as Error).cause).toMatchObject({ name: 'Error', message: 'no space', code: 'ENOSPC' });
  expect(sent('a text')).toEqual(new Error('a text'));
  expect(sent(new TapeError({}, 'unknown here'))).toMatchObject({ name: 'TapeError', message: 'unknown here' });
});

test('an error of an unknown class becomes an error of its nearest known base class', () => {
  class OfAnotherPackage extends TruncatedShardError {
    static override readonly kind: string = 'OfAnotherPackage';
  }
  const error = sent(new OfAnotherPackage({ shard: 's.tar', offset: 5 }, 'cut'));
  expect(error).toBeInstanceOf(TruncatedShardError);
  expect(error).toMatchObject({ name: 'OfAnotherPackage', shard: 's.tar', offset: 5, message: 'cut' });
});
