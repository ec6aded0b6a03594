import { OptionError, option, sentence } from '@shardtool/base';
import type { CheckedOptions } from '../options.js';
import { listBeforePack } from '../output/lists.js';
import type { PackState } from '../output/output-folder.js';
import { findPlan } from '../output/pack-state.js';
import { readQuarantine } from '../output/quarantine.js';
import { withProgress } from '../progress.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import type { OpenSource } from '../source/open-source.js';
import { refuseDedupe, settleAppend } from './append.js';
import { prepare } from './planning/prepare.js';
import { checkedReport, type PackReport, plannedReport } from './report.js';
import { checkPlanned } from './workers/pack-shards.js';
import { PackWorkers } from './workers/pack-workers.js';
import type { PackWork, PrepareWork } from './workers/work.js';

/** Reports what a pack would write, and writes nothing. */
export async function planOnly(work: PrepareWork): Promise<PackReport> {
  const prepared = await prepare(work);
  prepared.close();
  return plannedReport(prepared);
}

/** Reports what an append would add and change. Nothing is locked or written, so the dataset may be read-only. */
export async function planAppend(location: string, source: OpenSource, given: CheckedOptions): Promise<PackReport> {
  if (given.given.includes('check')) {
    const message = sentence`The option ${option('check')} cannot be combined with ${option('append')} and ${option('dryRun')}, which opens no file; remove one of them.`;
    throw new OptionError({}, message);
  }
  // This import is here because only an append needs the reader.
  const { lookAtDataset } = await import('../change/dataset-change.js');
  const { staging, storage, signal } = given;
  return lookAtDataset(location, { staging, storage, signal }, async ({ manifest, folder, destination }) => {
    const output = folder.path;
    const { options, kept } = settleAppend(output, manifest, folder.noted(), given);
    checkOtherIndexes(options.format, options.index);
    if (destination.isElsewhere) refuseDedupe(destination.location, options);
    const quarantined = readQuarantine(output).slice(0, findPlan(output)?.base?.quarantined);
    const base = { folder: output, location, storage, manifest, quarantined };
    const workers = new PackWorkers(options, destination.isElsewhere, source.flight !== null);
    const report = await withProgress(workers, options, (ticker) =>
      planOnly({ source, output, options, base, workers, ticker, destination }),
    );
    return { ...report, keptOptions: kept };
  });
}

/** Checks every file as a pack would, and lists what would be skipped. */
export async function checkFiles(work: PackWork, found: PackState | null): Promise<PackReport> {
  const { folder, output, destination, options } = work;
  if (found !== 'nothing') folder.refuseDataset();
  const prepared = await prepare({ ...work, options: { ...options, onBad: 'quarantine' } });
  try {
    const checked = await checkPlanned(work, prepared);
    const bad = [...(prepared.facts.quarantined ?? []), ...checked.flatMap(({ quarantined }) => quarantined)];
    await listBeforePack(output, options.format, bad, prepared.skipped());
    await destination.sendNotes();
    return checkedReport(prepared, checked);
  } finally {
    prepared.close();
  }
}
