import { OptionError, option, sentence } from '@shardtool/base';
import { isTableLayout, type Manifest, readManifest } from '@shardtool/format';
import { OUTPUT_OPTIONS, PACK_OPTIONS } from '../option-table.js';
import { type CheckedOptions, checkOptions, PACK_DEFAULTS } from '../options.js';
import { namedShards } from '../output/keep-version.js';
import type { PackNote } from '../output/pack-note.js';
import { findPlan } from '../output/pack-state.js';
import { readQuarantine } from '../output/quarantine.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { nameOf } from './planning/base-dataset.js';
import { makePlan, resumePlan } from './planning/make-plan.js';
import type { PackReport } from './report.js';
import { packAndCommit } from './whole.js';
import type { PackWork } from './workers/work.js';

/** Adds the files of the source that the dataset in the folder does not have yet. */
export async function packMore(work: PackWork): Promise<PackReport> {
  const { folder, output, destination } = work;
  // This import is here because only an append needs the reader.
  const { finishInterrupted } = await import('../change/forget-erased.js');
  await finishInterrupted({ location: destination.place, storage: work.options.storage, destination });
  const manifest = await readManifest(output);
  const { options, kept } = settleAppend(output, manifest, folder.noted(), work.options);
  checkOtherIndexes(options.format, options.index);
  const layout = await layoutOfChoice(options);
  if (destination.isElsewhere) refuseDedupe(destination.location, options);
  if (options.restart && !destination.isElsewhere) folder.clearAdded(layout, await namedShards(output));
  // Another process may still be writing shards of the discarded plan, so their names are not used again.
  else if (options.restart) folder.discardPlan();
  else if (folder.look(options) === 'dataset') folder.removeLeftState();
  await destination.removeGone();
  const earlier = findPlan(output);
  // Entries of an earlier pack that did not end are written again.
  const quarantined = readQuarantine(output).slice(0, earlier?.base?.quarantined);
  const growing = {
    ...work,
    options,
    layout,
    base: { folder: output, location: destination.place, storage: options.storage, manifest, quarantined },
  };
  const header = earlier === null ? await makePlan(growing) : await resumePlan(growing);
  return { ...(await packAndCommit(growing, header)), keptOptions: kept };
}

/**
 * Returns the options of a pack that adds to the dataset in `output`: omitted options have the values of the dataset.
 * Throws {@link OptionError} if an option differs from the dataset, and the errors of `checkOptions`.
 */
export function settleAppend(
  output: string,
  { format, shards }: Manifest,
  { otherIndexes, options: made = {} }: Pick<PackNote, 'otherIndexes' | 'options'>,
  options: CheckedOptions,
): SettledOptions {
  if (isTableLayout(format)) {
    const message = `The dataset ${output} has shards of the format ${format}, which only "convert" writes; add to its source dataset, and convert that again.`;
    throw new OptionError({ path: output }, message);
  }
  if (options.given.includes('format') && options.format !== format) {
    const message = sentence`The dataset ${output} has shards of the format ${format}, but the option ${option('format')} is ${options.format}; remove it.`;
    throw new OptionError({ path: output }, message);
  }
  const isGiven = (name: string) => options.given.includes(name);
  const kept = Object.fromEntries(
    Object.entries(made).filter(([name, value]) => {
      const isPattern = name === 'include' || name === 'exclude';
      return KEPT.has(name) && value !== undefined && !isGiven(name) && !(isPattern && options.files);
    }),
  );
  const given = Object.fromEntries(options.given.map((name) => [name, options[name as keyof CheckedOptions]]));
  const checked = checkOptions({
    name: nameOf(shards.at(-1)?.file),
    index: otherIndexes,
    ...given,
    ...kept,
    format,
  });
  const shown = Object.entries(kept).filter(([name, value]) => !isDefault(name, value));
  return { options: checked, kept: Object.fromEntries(shown) };
}

/** Comparing with the images of the dataset reads them from files. */
export function refuseDedupe(location: string, { dedupe }: CheckedOptions): void {
  if (!dedupe) return;
  const message = sentence`The option ${option('dedupe')} would have to read every image of the dataset from its bucket; append to ${location} without it.`;
  throw new OptionError({ path: location }, message);
}

/**
 * Options of a pack that adds to a dataset, and those of them that are taken from the dataset instead of the defaults.
 */
export interface SettledOptions {
  readonly options: CheckedOptions;
  readonly kept: Readonly<Record<string, unknown>>;
}

/**
 * Options that a dataset keeps for later packs. The layout is known from the dataset itself, and labels are given for
 * each pack.
 */
const KEPT: ReadonlySet<string> = new Set(
  Object.entries({ ...OUTPUT_OPTIONS, ...PACK_OPTIONS })
    .filter(([name, { isRecorded }]) => isRecorded && !['format', 'name', 'index', 'labels'].includes(name))
    .map(([name]) => name),
);

function isDefault(name: string, value: unknown): boolean {
  return JSON.stringify((PACK_DEFAULTS as Record<string, unknown>)[name]) === JSON.stringify(value);
}
