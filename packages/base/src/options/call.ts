import { OptionError } from '../errors.js';
import { optionName, sentence } from '../sentence.js';
import { checkGiven, type OwnChecks } from './check.js';
import type { CheckedValues, OptionTable } from './entry.js';
import { checkStorageOptions } from './storage.js';

/** Options that calls share. The table of a call lists those that it supports. */
export const CALL_OPTIONS = {
  signal: { kind: 'own', type: 'AbortSignal', must: 'is an AbortSignal', help: 'Ends the call' },
  onProgress: { kind: 'own', type: 'function', must: 'is a function', help: 'Called as the work advances' },
  workers: { kind: 'whole', from: 1, to: 1024, help: 'Worker threads' },
  storage: {
    kind: 'own',
    type: 'StorageOptions',
    must: 'is an object',
    help: 'Options for requests to remote storage',
  },
} as const satisfies OptionTable;

const isFunction = (value: unknown) => typeof value === 'function';

const OWN_CHECKS: OwnChecks = {
  signal: (value) => value instanceof AbortSignal,
  storage: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  onProgress: isFunction,
  onFault: isFunction,
  onTakenOut: isFunction,
  onUnproven: isFunction,
};

/**
 * Checks the options of a call. `call` is its name, such as `openDataset`. `own` has a check for each entry of kind
 * `own` except those of {@link CALL_OPTIONS} and callbacks. Throws OptionError for an unknown name or an invalid value.
 */
export function checkCallOptions<Entries extends OptionTable>(
  call: string,
  entries: Entries,
  options: unknown,
  own: OwnChecks = {},
): CheckedValues<Entries> {
  const owner = { name: call, wrong: (name: string) => sentence`The option ${optionName(name)} of ${call} is invalid` };
  const checked = checkGiven(owner, entries, options, { ...OWN_CHECKS, ...own });
  if ('storage' in entries) checkStorageOptions((checked as { readonly storage?: unknown }).storage);
  return checked;
}

/** Throws OptionError unless `location`, the first argument of a call, is text. */
export function checkLocation(call: string, location: unknown): asserts location is string {
  if (typeof location === 'string' && location !== '' && !location.includes('\0')) return;
  const given = typeof location === 'string' ? JSON.stringify(location) : `a value of type ${typeof location}`;
  throw new OptionError({}, `${call} takes a path or a URL, not ${given}.`);
}

/** Throws OptionError unless the options of a call are an object. */
export function checkObject(call: string, options: unknown): void {
  if (typeof options === 'object' && options !== null && !(Symbol.iterator in options)) return;
  throw new OptionError({}, `${call} takes options as an object.`);
}
