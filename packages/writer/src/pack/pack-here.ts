import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SIDECAR_NAMES, sidecarPaths } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import type { CheckedOptions } from '../options.js';
import { atDestination, type Destination, folderDestination, openDestination } from '../output/destination.js';
import { OutputFolder, type PackState } from '../output/output-folder.js';
import { partText } from '../part.js';
import { withProgress } from '../progress.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import { checkOtherIndexes } from '../shard/other-indexes.js';
import { type OpenSource, openSource } from '../source/open-source.js';
import { packMore } from './append.js';
import { checkFiles, planAppend, planOnly } from './dry-run.js';
import type { PackRequest } from './pack-one.js';
import { packPart } from './part.js';
import type { PackReport } from './report.js';
import { packWhole } from './whole.js';
import { PackWorkers } from './workers/pack-workers.js';
import type { PackWork } from './workers/work.js';

/** Packs in this process. With `isAhead` many files are read concurrently; otherwise each worker reads one at a time. */
export async function packHere(request: PackRequest, isAhead: boolean): Promise<PackReport> {
  const { output, options } = request;
  const hasLabels = (options.labels ?? options.coco ?? options.yolo) !== undefined;
  const source = await openSource(request.source, { ...options, hasLabels }, isAhead);
  try {
    const { metadata } = source;
    const settled = metadata === null ? options : withLabels(options, metadata);
    const report =
      settled.append && settled.dryRun
        ? await planAppend(output, source, settled)
        : await atDestination(await destinationOf(output, settled), (destination) =>
            packTo(destination, source, settled),
          );
    return { ...report, metadata };
  } finally {
    source.close();
  }
}

function withLabels(options: CheckedOptions, labels: string): CheckedOptions {
  return { ...options, labels, given: [...options.given, 'labels'] };
}

async function destinationOf(output: string, options: CheckedOptions): Promise<Destination> {
  const { part, staging, signal, storage } = options;
  const upload = { part: part === null ? undefined : partText(part), staging, signal, storage };
  if (!isRemote(output)) return openDestination(output, upload);
  // Such a dry run writes nothing, neither here nor in a bucket.
  const isNothing = options.dryRun && !isCheckOfFiles(options);
  return isNothing ? folderDestination(join(tmpdir(), 'shardtool-plan')) : openDestination(output, upload);
}

async function packTo(destination: Destination, source: OpenSource, options: CheckedOptions): Promise<PackReport> {
  const output = destination.folder;
  const { part } = options;
  checkOtherIndexes(options.format, options.index);
  const layout = await layoutOfChoice(options);
  options.signal?.throwIfAborted();
  const isPlan = options.dryRun && !isCheckOfFiles(options);
  const folder = isPlan ? null : await OutputFolder.open(output, part, options.signal);
  try {
    const found = folder === null ? null : await lookAt(folder, destination, options);
    const workers = new PackWorkers(options, destination.isElsewhere, source.flight !== null);
    return await withProgress(workers, options, async (ticker) => {
      const prepare = { source, output, options, base: null, workers, ticker };
      if (folder === null) return planOnly(prepare);
      return packStrategy({ ...prepare, folder, destination, layout, part }, found);
    });
  } finally {
    folder?.release();
  }
}

/** Returns what an earlier pack has left; null for a pack that adds to the dataset. */
async function lookAt(
  folder: OutputFolder,
  destination: Destination,
  options: CheckedOptions,
): Promise<PackState | null> {
  await destination.fetch(options.recheck);
  if (options.append) {
    await destination.fetchFiles(sidecarPaths(SIDECAR_NAMES));
    return null;
  }
  const found = folder.look(options);
  if (found === 'dataset') {
    folder.removeLeftState();
    await destination.removeGone();
  }
  return found;
}

function packStrategy(work: PackWork, found: PackState | null): Promise<PackReport> {
  if (work.options.dryRun) return checkFiles(work, found);
  if (found === null) return packMore(work);
  return work.part === null ? packWhole(work, found) : packPart(work);
}

/** A dry run writes nothing, unless the caller set how files are checked: then it writes lists of what it found. */
function isCheckOfFiles({ dryRun, given }: CheckedOptions): boolean {
  return dryRun && given.includes('check');
}
