import { OPTION_GROUPS, type OptionGroup } from '@shardtool/base/text';
import type { FlagSpec, FlagTable } from '../command.js';

/** An option as help and docs show it. */
export interface OptionText {
  /** `-q, --quiet`, `--resize <PX>`. */
  readonly term: string;
  readonly text: string;
  /** `default: 90`, `values: tar, lmdb`, `repeatable`. */
  readonly notes: readonly string[];
}

/** Options under their headings, in the order of headings. Headings without options are omitted. */
export function optionsByGroup(flags: FlagTable): readonly (readonly [OptionGroup, readonly [string, FlagSpec][]])[] {
  const entries = Object.entries(flags);
  return OPTION_GROUPS.map((group) => [group, entries.filter(([, flag]) => groupOf(flag) === group)] as const).filter(
    ([, options]) => options.length > 0,
  );
}

function groupOf({ group }: FlagSpec): OptionGroup {
  return group ?? 'General';
}

export function optionText(name: string, flag: FlagSpec): OptionText {
  const short = [flag.alias ?? []].flat().find((alias) => alias.length === 1);
  const value = placeholderOf(flag);
  const notes = [
    ...(flag.demandOption === true ? ['required'] : []),
    ...(flag.choices === undefined ? [] : [`values: ${flag.choices.join(', ')}`]),
    ...(flag.array === true ? ['repeatable'] : []),
    ...defaultOf(flag),
  ];
  return {
    term: `${short === undefined ? '' : `-${short}, `}--${name}${value === null ? '' : ` <${value}>`}`,
    text: flag.describe,
    notes,
  };
}

/** A switch takes no value. */
function placeholderOf({ type, choices, placeholder }: FlagSpec): string | null {
  if (type === 'boolean') return null;
  if (placeholder !== undefined) return placeholder;
  if (choices !== undefined) return 'VALUE';
  return type === 'number' ? 'N' : 'TEXT';
}

/** The default, except that a switch is off. */
function defaultOf({ type, default: value, defaultDescription }: FlagSpec): string[] {
  const shown = defaultDescription ?? (value === undefined ? undefined : String(value));
  if (shown === undefined || shown === '' || (type === 'boolean' && shown === 'false')) return [];
  return [`default: ${shown}`];
}
