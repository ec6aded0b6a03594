import { listBeforePack } from '../output/lists.js';
import type { PackState } from '../output/output-folder.js';
import { prepare } from './planning/prepare.js';
import { checkedReport, type PackReport, plannedReport } from './report.js';
import { checkPlanned } from './workers/pack-shards.js';
import type { PackWork, PrepareWork } from './workers/work.js';

/** Reports what a pack would write, and writes nothing. */
export async function planOnly(work: PrepareWork): Promise<PackReport> {
  const prepared = await prepare(work);
  prepared.close();
  return plannedReport(prepared);
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
