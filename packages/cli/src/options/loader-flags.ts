import type { BucketsInput, LoaderOptions } from '@shardtool/reader';
import { LOADER_OPTIONS, type LoaderOption, type ReadingCommand } from '@shardtool/reader/option-table';
import { kebab } from '../kebab.js';
import { UsageError } from '../terminal/outcome.js';
import { flagsOf } from './option-flags.js';

type Table = typeof LOADER_OPTIONS;
/** The options that a command has as flags. */
type OptionsOf<Command extends ReadingCommand> = {
  readonly [Name in keyof Table as Table[Name] extends { readonly commands: readonly (infer Of)[] }
    ? Command extends Of
      ? Name
      : never
    : never]: Table[Name];
};

const ALL: Readonly<Record<string, LoaderOption>> = LOADER_OPTIONS;

function optionsOf<Command extends ReadingCommand>(command: Command): OptionsOf<Command> {
  const has = ({ commands = [] }: LoaderOption) => commands.includes(command);
  return Object.fromEntries(Object.entries(ALL).filter(([, entry]) => has(entry))) as OptionsOf<Command>;
}

/** The flags for the loader's options of a command. Options that the user omits stay undefined. */
export function loaderFlags<Command extends ReadingCommand>(command: Command) {
  return flagsOf(optionsOf(command));
}

/** Converts the values of these flags to loader options. */
export function loaderOptions<Command extends ReadingCommand>(
  command: Command,
  given: Readonly<Record<string, unknown>>,
): Pick<LoaderOptions, keyof OptionsOf<Command>> {
  const named = Object.entries<{ readonly flag?: string }>(optionsOf(command)).map(([name, { flag }]) => [
    name,
    given[flag ?? kebab(name)],
  ]);
  const options = Object.fromEntries(named.filter(([, value]) => value !== undefined));
  return typeof options.aspectBuckets === 'string'
    ? { ...options, aspectBuckets: bucketsOf(options.aspectBuckets) }
    : options;
}

/** `1024x1024`, `1024x1024:64`, `1024x1024:64:2` are area, step and ratio; a list is of sizes `640x384,512x512`; or JSON. */
function bucketsOf(given: string): BucketsInput {
  const rule = /^(\d{1,5})x(\d{1,5})(?::(\d{1,4}))?(?::([\d.]{1,6}))?$/.exec(given);
  if (rule !== null) {
    const [, width, height, step, ratio] = rule;
    return {
      area: Number(width) * Number(height),
      ...(step !== undefined && { step: Number(step) }),
      ...(ratio !== undefined && { maxRatio: Number(ratio) }),
    };
  }
  if (/^\d{1,5}x\d{1,5}(,\d{1,5}x\d{1,5})+$/.test(given)) {
    return given.split(',').map((size) => {
      const [width, height] = size.split('x').map(Number);
      return [height!, width!] as const;
    });
  }
  try {
    return JSON.parse(given) as BucketsInput;
  } catch {
    throw new UsageError(
      `--aspect-buckets takes an area with a step and a ratio, as 1024x1024:64:2; sizes, as 384x640,512x512,640x384 (width first); or ` +
        `JSON, as '{"area": 1048576, "crop": "random"}'; and not "${given}".`,
    );
  }
}
