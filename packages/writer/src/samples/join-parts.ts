import path, { join } from 'node:path';
import { DuplicateKeyError, option, sentence } from '@shardtool/base';
import { indexPathOf, readShardIndex, sidecarPath } from '@shardtool/format';
import { NoImagesError, PartsMissingError } from '../errors.js';
import type { HeldOutput } from '../folder-lock.js';
import { commitDataset, type PartialField } from '../output/commit.js';
import type { Destination } from '../output/destination.js';
import { writeNote } from '../output/pack-note.js';
import { removeState } from '../output/pack-state.js';
import { type PartNote, partNoteName, readPartNotes } from '../output/part-notes.js';
import { isAsNoted, readShardNote } from '../output/shard-note.js';
import { OPEN, partText } from '../part.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import type { ShardRecord, ShardTarget } from '../shard/new-shard.js';
import { SeenKeys } from '../shard/seen-keys.js';
import { filesOfShard, shardPaths } from '../shard/shard-paths.js';

/** Returns the parts of a writer that are not finished, such as `2/4`. */
export function missingParts(notes: readonly PartNote[], count: number): readonly string[] {
  const finished = new Set(notes.filter(({ isFinished }) => isFinished).map(({ part }) => part.number));
  return Array.from({ length: count }, (_, i) => i + 1)
    .filter((number) => !finished.has(number))
    .map((number) => partText({ number, count }));
}

/**
 * Combines the output of a writer's parts into a dataset, in the order of the parts, and returns the fields that not
 * all samples have. `numbers` are the parts if their number was open. Throws {@link PartsMissingError} if a part is not finished or a shard has changed, {@link
 * DuplicateKeyError} if two parts have the same key, and {@link NoImagesError} if no part has a sample.
 */
export async function joinParts(
  destination: Destination,
  lock: HeldOutput,
  numbers?: readonly number[],
): Promise<readonly PartialField[]> {
  const output = destination.folder;
  const notes = readPartNotes(output);
  const { part, options } = notes[0]!;
  if (part.count === OPEN) checkOpenParts(output, notes, numbers);
  const missing = missingParts(notes, part.count);
  if (missing.length > 0) throw notFinished(output, missing, notes, part.count);
  const { format, index: otherIndexes, classes, columns } = options;
  const layout = await layoutOfChoice({ format, lmdbValues: options.lmdbValues as 'sample' | 'image' });
  const stems = notes.flatMap((note) => note.stems);
  if (stems.length === 0) {
    throw new NoImagesError(
      { path: output },
      `No sample was written to ${output} by any of its ${notes.length} parts, so there is no dataset.`,
    );
  }
  await destination.fetchFiles(stems.map((stem) => sidecarPath('index', shardPaths(layout, stem).shard)));
  const target = { output, layout, otherIndexes, columnTypes: new Map(), maxSampleBytes: 0 };
  const shards = notes.flatMap((note) => note.stems.map((stem) => shardOf(note, stem, target)));
  await refuseRepeatedKeys(output, shards);
  await writeNote(output, { version: 1, format, shards: stems, otherIndexes });
  const partialFields = await commitDataset(output, shards, { format, classes, columns, otherIndexes, lock });
  removeState(output);
  return partialFields;
}

/**
 * Throws {@link PartsMissingError} unless exactly the parts `numbers` are finished. A part that no process expects may have
 * samples that another part has, too.
 */
function checkOpenParts(output: string, notes: readonly PartNote[], numbers: readonly number[] | undefined): void {
  if (numbers === undefined) {
    const message = sentence`The parts of ${output} were written by a job with a fixed number of parts, and only that job can commit them; run the job again with ${option('overwrite')}.`;
    throw new PartsMissingError({ path: output }, message);
  }
  const finished = new Set(notes.filter(({ isFinished }) => isFinished).map(({ part }) => part.number));
  const missing = numbers.filter((number) => !finished.has(number)).map((number) => partText({ number, count: OPEN }));
  if (missing.length > 0) throw notFinished(output, missing, notes, numbers.length);
  const extra = notes.find(({ part }) => !numbers.includes(part.number));
  if (extra === undefined) return;
  const message = sentence`Part ${partText(extra.part)} of ${output} was started, but is not among the ${numbers.length} parts to commit; run the job again with ${option('overwrite')}.`;
  throw new PartsMissingError({ path: output }, message);
}

function shardOf({ part }: PartNote, stem: string, target: ShardTarget): ShardRecord {
  const record = readShardNote<ShardRecord>(target.output, stem, partNoteName(part));
  if (record !== null && isAsNoted(record, stem, target, false)) return record;
  const shard = filesOfShard(target.layout, stem, []).at(-1)!;
  throw new PartsMissingError(
    { path: target.output, shard },
    sentence`${shard}, or a file next to it, has changed since part ${partText(part)} of ${target.output} wrote it; ${WRITE_AGAIN}.`,
  );
}

/** Each part has already checked its own keys for repetitions. */
async function refuseRepeatedKeys(output: string, shards: readonly ShardRecord[]): Promise<void> {
  const seen = new SeenKeys();
  for (const [place, { file }] of shards.entries()) {
    for (const key of await keysOf(output, file)) {
      if (!seen.add(key)) continue;
      // The hash occurred before. In most cases the key did, too.
      for (const other of shards.slice(0, place)) {
        if (!(await keysOf(output, other.file)).includes(key)) continue;
        throw new DuplicateKeyError(
          { key, shard: file },
          sentence`Two parts of ${output} have the key ${JSON.stringify(key)}: it is in ${other.file} and in ${file}; give each sample its own key, and ${WRITE_AGAIN}.`,
        );
      }
    }
  }
}

const WRITE_AGAIN = sentence`write the part again with ${option('overwrite')}`;

async function keysOf(output: string, file: string): Promise<readonly string[]> {
  return (await readShardIndex(path.join(output, indexPathOf(file)), { parts: ['key'] })).key;
}

function notFinished(
  output: string,
  missing: readonly string[],
  notes: readonly PartNote[],
  count: number,
): PartsMissingError {
  const started = new Set(notes.map(({ part }) => partText(part)));
  const named = missing.slice(0, 5).map((part) => `${part} ${started.has(part) ? 'did not end' : 'was not started'}`);
  const text = named.join(', ') + (missing.length > 5 ? ', ...' : '');
  return new PartsMissingError(
    { path: join(output) },
    `${missing.length} of the ${count} parts of ${output} ${missing.length === 1 ? 'is' : 'are'} not finished (${text}); write ${missing.length === 1 ? 'it' : 'them'}; finished parts are kept.`,
  );
}
