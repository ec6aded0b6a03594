import { OptionError, onCommandLine, option, sentence } from '@shardtool/base';
import type { ColumnType, ColumnValue } from '@shardtool/format';
import { type FileTable, pathAt } from '../source/file-table.js';

/** Label columns with the origin of each sample, by the value of the option `provenance` that adds them. */
export const PROVENANCE_COLUMNS = {
  /** Path or URL of the image, without secrets. */
  location: 'source_location',
  /** Modification time of the image's file, in ISO 8601. */
  modified: 'source_modified',
  /** sha256 of the image's file, before any change of the image. */
  sha256: 'source_sha256',
  /** When the pack or append was planned, in ISO 8601. */
  ingested: 'ingested',
  /** The command, with the options that were set. */
  command: 'pack_command',
} as const;

export type ProvenanceFact = keyof typeof PROVENANCE_COLUMNS;

/** The facts about the origin of samples that are the same for a whole pack. */
export interface Provenance {
  readonly facts: readonly ProvenanceFact[];
  /** Prefix of each path, without secrets. */
  readonly root: string;
  readonly ingested: string;
  readonly command: string;
}

/** True for a column that the option adds. */
export function isProvenanceColumn(name: string): boolean {
  return (Object.values(PROVENANCE_COLUMNS) as readonly string[]).includes(name);
}

/** The types of the columns, all text. */
export function provenanceTypes(facts: readonly ProvenanceFact[]): [name: string, type: ColumnType][] {
  return facts.map((fact) => [PROVENANCE_COLUMNS[fact], 'string']);
}

/** Throws OptionError if the labels already have a column that the option would add. */
export function checkNoProvenance(facts: readonly ProvenanceFact[], columns: ReadonlySet<string>): void {
  const twice = facts.map((fact) => PROVENANCE_COLUMNS[fact]).find((name) => columns.has(name));
  if (twice === undefined) return;
  const message = sentence`The labels have the column "${twice}", which ${option('provenance')} adds too: rename the column.`;
  throw new OptionError({}, message);
}

/**
 * The columns for these images of a table of files. The sha256 is null until the worker that reads an image fills it in. An
 * unknown time is null.
 */
export function provenanceColumns(
  { facts, root, ingested, command }: Provenance,
  files: FileTable,
  images: Uint32Array,
): [name: string, values: ColumnValue[]][] {
  const factOf: Record<ProvenanceFact, (image: number) => ColumnValue> = {
    location: (image) => root + pathAt(files, image),
    modified: (image) => (files.mtimeMs[image]! > 0 ? new Date(files.mtimeMs[image]!).toISOString() : null),
    sha256: () => null,
    ingested: () => ingested,
    command: () => command,
  };
  return facts.map((fact) => [PROVENANCE_COLUMNS[fact], Array.from(images, factOf[fact])]);
}

/** Options that do not affect the content of the dataset, or that have no form on the command line. All parts share one plan, and so one command. */
const NOT_SHOWN = new Set(['part', 'workers', 'onProgress', 'signal', 'storage', 'staging', 'planMemory', 'inFlight']);

/** The command line for a pack, with the options that the caller set. */
export function packCommand(
  source: string,
  output: string,
  given: readonly string[],
  optionOf: (name: string) => unknown,
): string {
  const words = ['shardtool', 'pack', source, output];
  for (const name of given) {
    const value = optionOf(name);
    if (NOT_SHOWN.has(name) || value === undefined) continue;
    const flag = onCommandLine({ option: name, isQuoted: false });
    if (value === true) words.push(flag);
    else if (value === false) words.push(flag.replace('--', '--no-'));
    else if (Array.isArray(value) && value.length > MOST_VALUES) words.push(flag, `(${value.length} values)`);
    else words.push(flag, Array.isArray(value) ? value.join(',') : String(value));
  }
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

/** For longer lists, the command line shows only the number of values. */
const MOST_VALUES = 20;
