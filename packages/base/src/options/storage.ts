import { didYouMean } from '../did-you-mean.js';
import { OptionError } from '../errors.js';
import { option, optionName, sentence } from '../sentence.js';
import { shown } from './check.js';

/** Types of the options for requests to remote storage. */
const STORAGE_OPTION_TYPES = {
  endpointUrl: 'string',
  region: 'string',
  unsigned: 'boolean',
  requesterPays: 'boolean',
} as const;

const MUST = { string: 'text', boolean: 'true or false' } as const;

/** Throws {@link OptionError} for an unknown option of `storage` or an invalid value. Undefined is allowed. */
export function checkStorageOptions(options: unknown): void {
  const names = Object.keys(STORAGE_OPTION_TYPES);
  for (const [name, value] of Object.entries(options ?? {})) {
    if (!Object.hasOwn(STORAGE_OPTION_TYPES, name)) {
      const hint = didYouMean(name, names) || `; there are ${names.join(', ')}.`;
      throw new OptionError({}, sentence`${option('storage')} has no option "${name}"${hint}`);
    }
    const type = STORAGE_OPTION_TYPES[name as keyof typeof STORAGE_OPTION_TYPES];
    if (value === undefined || typeof value === type) continue;
    const message = sentence`The option ${optionName(`storage.${name}`)} is ${MUST[type]}, not ${shown(value)}.`;
    throw new OptionError({}, message);
  }
}
