import path from 'node:path';
import { OptionError, option, sentence } from '@shardtool/base';
import { isTableLayout, type OutputLayoutName, type WrittenLayoutName } from '@shardtool/format';
import { NoImagesError } from '../../errors.js';
import type { CheckedConvertOptions } from '../../options.js';
import type { Destination } from '../../output/destination.js';
import type { OutputFolder } from '../../output/output-folder.js';
import { Naming } from '../../plan/naming.js';
import { withProgress } from '../../progress.js';
import type { DatasetShard } from '../../shard/dataset-shards.js';
import { layoutOfChoice } from '../../shard/layout-choice.js';
import type { ShardRecord } from '../../shard/new-shard.js';
import { filesOfShard, numberedStem } from '../../shard/shard-paths.js';
import type { TarStream } from '../input/input.js';
import { classesOfFolders, type RecastOptions, settleRecast } from '../input/recast.js';
import { type ConvertReport, commit, refuseNothing, skippedLinksRemedy } from '../report.js';
import { convertStream } from './convert-stream.js';

/** Uses one thread, because a stream can only be read sequentially. */
export async function convertTarStream(
  { bytes: input, name, naming, folders }: TarStream,
  folder: OutputFolder,
  destination: Destination,
  options: CheckedConvertOptions,
  madeFrom: string | null,
  asked: RecastOptions,
): Promise<ConvertReport> {
  const { format, lmdbValues, index: otherIndexes, maxShardBytes, maxShardSamples, maxSampleBytes, signal } = options;
  if (isTableLayout(format)) refuseStream(name, format);
  const layout = await layoutOfChoice({ format, lmdbValues });
  const done = { files: 0, bytes: 0 };
  const stop = () => {
    input.destroy();
  };
  return withProgress({ done, stop, close: async () => stop() }, options, async (ticker) => {
    ticker.begin('convert');
    const classes = folders === undefined ? null : await classesOfFolders(folders, asked);
    let isHeld = classes === null ? undefined : false;
    const target = { output: folder.path, layout, columnTypes: new Map(), otherIndexes, maxSampleBytes };
    const { shards, skippedEntries, skippedLinks } = await convertStream(input, name, naming, classes, target, {
      maxShardBytes,
      maxShardSamples,
      begin: async (number) => {
        const stem = numberedStem(options.name, number);
        await folder.announce(layout, [stem], otherIndexes, { madeFrom: madeFrom ?? undefined });
        await destination.sendNotes();
        return stem;
      },
      made: async (stem) => {
        const files = filesOfShard(layout, stem, otherIndexes);
        // If classes are known only at the end, all shards are written a second time.
        isHeld ??= await mayChange(shardAt(folder.path, files, stem, format), asked);
        if (!isHeld) await destination.sendShard(files, null, files.slice(0, -1));
      },
      report: (samples, bytes) => {
        done.files += samples;
        done.bytes += bytes;
        signal?.throwIfAborted();
      },
    });
    await destination.whenSent();
    if (shards.length === 0) {
      const remedy = skippedLinks > 0 ? sentence`; ${skippedLinksRemedy(skippedLinks)}` : '';
      throw new NoImagesError({}, sentence`${name} contains no sample, so there is nothing to convert${remedy}.`);
    }
    if (naming !== null) refuseUnmet(naming, shards, name);
    const facts = { format, classes: classes ?? [], columns: [], otherIndexes };
    if (!isHeld) return commit(folder, shards, facts, { skippedEntries, skippedLinks, leftOut: 0 });
    const filesOf = (number: number) => filesOfShard(layout, numberedStem(options.name, number), otherIndexes);
    const written = shards.map((_, i) => shardAt(folder.path, filesOf(i), numberedStem(options.name, i), format));
    const settled = await settleRecast(written, [], asked);
    const columnTypes = new Map((settled?.columns ?? []).map((column) => [column.name, column.type]));
    const { convertShard } = await import('../convert-shard.js');
    const left: ShardRecord[] = [];
    let [skipped, leftOut] = [skippedEntries, 0];
    for (const [i, shard] of written.entries()) {
      const stop = () => signal?.throwIfAborted();
      const recast =
        settled === null
          ? null
          : await convertShard(shard, { ...target, columnTypes }, stop, undefined, settled.recast);
      skipped += recast?.skippedEntries ?? 0;
      leftOut += recast?.leftOut ?? 0;
      const renewed = recast ?? shards[i]!;
      if (renewed.samples === 0) continue;
      left.push(renewed);
      await destination.sendShard(filesOf(i), null, filesOf(i).slice(0, -1));
    }
    await destination.whenSent();
    if (left.length === 0) refuseNothing();
    const all = { ...facts, classes: settled?.recast.classes ?? [], columns: settled?.columns ?? [] };
    return commit(folder, left, all, { skippedEntries: skipped, skippedLinks, leftOut });
  });
}

/** Throws if a given extension matches no file. Otherwise masks would have become images, or fields of another name. */
function refuseUnmet(naming: Naming, shards: readonly ShardRecord[], name: string): void {
  const found = new Set(shards.flatMap(({ fieldCounts }) => [...fieldCounts.keys()]));
  const rule = naming.fields.find((candidate) => !found.has(Naming.fieldOfExtension(candidate)));
  if (rule === undefined) return;
  const there = [...found].sort().join(', ');
  throw new OptionError(
    {},
    sentence`The option ${option('fields')} is ${rule}, but no file of ${name} has this extension (its samples have ${there}). Remove the option, or give one of these extensions. The output already has shards, so also set ${option('overwrite')}.`,
  );
}

export function refuseStream(name: string, format: OutputLayoutName): never {
  const message = `${name} is a stream, but for ${format} all columns must be known before the first sample is written; convert the stream to tar, then the tar to ${format}.`;
  throw new OptionError({}, message);
}

/** A shard that was just written, with its index. */
function shardAt(folder: string, files: readonly string[], stem: string, format: WrittenLayoutName): DatasetShard {
  const file = files.at(-1)!;
  const indexPath = path.join(folder, files[0]!);
  const place = { path: path.join(folder, file), indexPath, cropsPath: null };
  return { name: file, stem, format, bytes: 0, record: null, ...place };
}

/** True if samples of a stream may be changed, judging by its first shard. */
async function mayChange(first: DatasetShard, asked: RecastOptions): Promise<boolean> {
  return (await settleRecast([first], [], asked)) !== null;
}
