import { compareCodePoints } from '@shardtool/base';
import { type FileFacts, type FileReader, type SourceFiles, SourceFilesBuilder } from '../source-files.js';
import type { SpoolPlace } from '../spool.js';

/** Number of files that are sorted in memory at a time, at some 200 bytes each. */
const SORTED_AT_ONCE = 500_000;

interface NamedFile {
  readonly name: string;
  readonly size: number;
  readonly modifiedMs?: number | undefined;
}

/**
 * Sorts files by the code points of their names, in bounded memory: sorted runs are written to disk, and then merged. Of two
 * files with the same name, the newer one is kept. The caller must close the result.
 */
export async function sortedFiles(
  files: AsyncIterable<NamedFile>,
  place: SpoolPlace,
  sortedAtOnce = SORTED_AT_ONCE,
): Promise<SourceFiles> {
  const runs: SourceFiles[] = [];
  let run: SourceFilesBuilder | null = null;
  let last = '';
  let waiting: NamedFile[] = [];
  const end = (): void => {
    if (run !== null) runs.push(run.finish());
    run = null;
  };
  const flush = (): void => {
    const sorted = newestOfEach(waiting.sort((a, b) => compareCodePoints(a.name, b.name)));
    waiting = [];
    if (sorted.length === 0) return;
    if (run !== null && compareCodePoints(last, sorted[0]!.name) >= 0) end();
    // Only the first run may stay in memory, because there may be hundreds.
    run ??= new SourceFilesBuilder(runs.length === 0 ? place : { ...place, memoryBytes: 0 });
    for (const file of sorted) run.add(file.name, factsOf(file));
    last = sorted.at(-1)!.name;
  };
  try {
    for await (const file of files) {
      waiting.push(file);
      if (waiting.length >= sortedAtOnce) flush();
    }
    flush();
    run ??= runs.length === 0 ? new SourceFilesBuilder(place) : null;
    end();
    return runs.length === 1 ? runs.pop()! : merged(runs, place);
  } finally {
    (run as SourceFilesBuilder | null)?.close();
    for (const one of runs) one.close();
  }
}

function factsOf({ size, modifiedMs }: NamedFile): FileFacts {
  return { bytes: size, mtimeMs: modifiedMs ?? 0 };
}

function newestOfEach(sorted: readonly NamedFile[]): NamedFile[] {
  const kept: NamedFile[] = [];
  for (const file of sorted) {
    const before = kept.at(-1);
    if (before?.name !== file.name) kept.push(file);
    else if ((file.modifiedMs ?? 0) > (before.modifiedMs ?? 0)) kept[kept.length - 1] = file;
  }
  return kept;
}

/** The next file of a run. */
interface Head {
  readonly reader: FileReader;
  file: number;
  path: string;
}

function merged(runs: readonly SourceFiles[], place: SpoolPlace): SourceFiles {
  const heads: Head[] = runs.map((run) => run.reader()).map((reader) => ({ reader, file: 0, path: reader.path(0) }));
  const builder = new SourceFilesBuilder(place);
  // A heap: the head with the first path is at 0.
  for (let at = (heads.length >> 1) - 1; at >= 0; at--) sink(heads, at);
  try {
    let path: string | null = null;
    let facts: FileFacts = { bytes: 0, mtimeMs: 0 };
    while (heads.length > 0) {
      const head = heads[0]!;
      const { reader, file } = head;
      const here = { bytes: reader.bytes(file), mtimeMs: reader.mtimeMs(file) };
      if (head.path !== path) {
        if (path !== null) builder.add(path, facts);
        path = head.path;
        facts = here;
      } else if (here.mtimeMs > facts.mtimeMs) facts = here;
      head.file++;
      if (head.file < reader.count) head.path = reader.path(head.file);
      else {
        const last = heads.pop()!;
        if (heads.length > 0) heads[0] = last;
      }
      sink(heads, 0);
    }
    if (path !== null) builder.add(path, facts);
    return builder.finish();
  } catch (error) {
    builder.close();
    throw error;
  }
}

function sink(heads: Head[], from: number): void {
  for (let at = from; ; ) {
    const left = 2 * at + 1;
    if (left >= heads.length) return;
    const right = left + 1;
    const least = right < heads.length && compareCodePoints(heads[right]!.path, heads[left]!.path) < 0 ? right : left;
    if (compareCodePoints(heads[at]!.path, heads[least]!.path) <= 0) return;
    [heads[at], heads[least]] = [heads[least]!, heads[at]!];
    at = least;
  }
}
