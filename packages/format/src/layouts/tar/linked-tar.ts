import { inLanes } from '@shardtool/base';
import { whyUnsafe } from '../../sample/sample-name.js';
import type { Source } from '../../source.js';
import { becameShorter } from '../bytes/file-window.js';
import { partAt } from '../bytes/part-at.js';
import { planRuns, type Span } from '../bytes/read-runs.js';
import type { OnSkipped } from '../layout.js';
import { unsafeName } from './faults.js';
import { scanEntries } from './scan.js';
import type { TarEntry } from './walk.js';

/** Concurrent reads for one read of this source. */
const READS_AT_ONCE = 8;
/** How many links to links are followed; the limit of Linux. */
const MOST_STEPS = 40;
const YIELDED = 256;

/** A file of the archive, under its own name or that of a link. */
interface NamedFile {
  readonly entry: TarEntry;
  readonly file: TarEntry;
}

/**
 * The files of a tar in sequence, without headers. A link is replaced by the file in the archive that it points to, so
 * the files of a sample are next to each other wherever their payloads are. Owns `source`.
 */
export class LinkedTar implements Source {
  readonly location: string;
  readonly size: number;
  readonly #source: Source;
  readonly #files: readonly NamedFile[];
  /** Links whose target is not a file in the archive. */
  readonly #skipped: readonly TarEntry[];
  /** The offset of each file in this source, and the end of the last one. */
  readonly #starts: Float64Array;

  private constructor(source: Source, files: readonly NamedFile[], skipped: readonly TarEntry[]) {
    this.location = source.location;
    this.#source = source;
    this.#files = files;
    this.#skipped = skipped;
    this.#starts = new Float64Array(files.length + 1);
    for (const [i, { file }] of files.entries()) this.#starts[i + 1] = this.#starts[i]! + file.bytes;
    this.size = this.#starts.at(-1)!;
  }

  /** Walks the whole archive, because a link may point to a later entry. Throws the errors of {@link scanEntries}. */
  static async open(source: Source): Promise<LinkedTar> {
    const entries: TarEntry[] = [];
    for await (const found of scanEntries(source)) entries.push(...found);
    const byName = new Map(entries.map((entry) => [plainPath(entry.name), entry]));
    const files: NamedFile[] = [];
    const skipped: TarEntry[] = [];
    for (const entry of entries) {
      const file = fileOf(entry, byName);
      if (file === null) skipped.push(entry);
      else files.push({ entry, file });
      const reason = file === null ? null : whyUnsafe(entry.name);
      if (reason !== null) throw unsafeName(source.location, entry.start, entry.name, reason);
    }
    return new LinkedTar(source, files, skipped);
  }

  /** Yields the files with their offsets in this source, some hundreds at a time. */
  *entries(onSkipped?: OnSkipped): Generator<readonly TarEntry[]> {
    for (const { name, start } of this.#skipped) onSkipped?.(name, start, 'link');
    for (let first = 0; first < this.#files.length; first += YIELDED) {
      yield this.#files.slice(first, first + YIELDED).map(({ entry, file }, i) => {
        const offset = this.#starts[first + i]!;
        return { name: entry.name, start: offset, offset, bytes: file.bytes };
      });
    }
  }

  async readAt(offset: number, target: Uint8Array): Promise<number> {
    const starts = this.#starts;
    const end = Math.min(offset + target.length, this.size);
    if (offset >= end) return 0;
    const wanted: (Span & { readonly to: number })[] = [];
    for (let number = partAt(starts, offset); number < this.#files.length && starts[number]! < end; number++) {
      const from = Math.max(offset, starts[number]!);
      const bytes = Math.min(end, starts[number + 1]!) - from;
      const at = this.#files[number]!.file.offset + from - starts[number]!;
      if (bytes > 0) wanted.push({ offset: at, bytes, to: from - offset });
    }
    await inLanes(planRuns(wanted), READS_AT_ONCE, async (run) => {
      const stored = new Uint8Array(run.bytes);
      const read = await this.#source.readAt(run.offset, stored);
      if (read < run.bytes) throw becameShorter(this.location, run.offset + read);
      for (const { offset: at, bytes, to } of run.spans)
        target.set(stored.subarray(at - run.offset, at - run.offset + bytes), to);
    });
    return end - offset;
  }

  close(): Promise<void> {
    return this.#source.close();
  }
}

/** The file that an entry is or points to; null for a link out of the archive, to a folder, to nothing, or in a circle. */
function fileOf(entry: TarEntry, byName: ReadonlyMap<string | null, TarEntry>): TarEntry | null {
  let found: TarEntry | undefined = entry;
  for (let step = 0; found?.link !== undefined; step++) {
    const place: string | null = step === MOST_STEPS ? null : targetOf(found);
    found = place === null ? undefined : byName.get(place);
  }
  return found ?? null;
}

/** The path in the archive that a link points to; null if it leads out of the archive. */
function targetOf({ name, link }: TarEntry): string | null {
  const { target, isSymbolic } = link!;
  return plainPath(isSymbolic && !target.startsWith('/') ? `${name}/../${target}` : target);
}

/** Normalises a path; null if it leads out of the archive. */
function plainPath(path: string): string | null {
  if (path.startsWith('/')) return null;
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') {
      if (parts.pop() === undefined) return null;
    } else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}
