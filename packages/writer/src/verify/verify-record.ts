import { createHash } from 'node:crypto';
import { FileChangedError, FileExistsError, FileNotFoundError, makeFolder, reasonOf } from '@shardtool/base';
import { hasNoFolder, type ManifestShard, sideFolder } from '@shardtool/format';
import { openStorage, readWholeOf, type Storage, type StorageOptions } from '@shardtool/storage';

/** The file of a dataset that lists when each shard was verified, with one JSON object per line. */
export const VERIFIED_FILE = 'verified.jsonl';

export type Check = 'checksums' | 'decode';

/** A line of verified.jsonl: the last check of a shard at one level. */
interface Line {
  /** Name and crc32 of the shard in dataset.json. A shard that was rewritten has another crc32, so it counts as not verified. */
  readonly file: string;
  readonly crc32: string;
  readonly check: Check;
  /** When the check ended, in ISO 8601. */
  readonly time: string;
  /** Number of faults that were found. */
  readonly faults: number;
}

type NamedShard = Pick<ManifestShard, 'file' | 'crc32'>;

/**
 * Bytes of shards after which the results so far are saved. A killed call has to verify at most this amount again.
 */
const SAVED_BYTES = 2 ** 30;
/** Number of tries to save while other processes save too. */
const SAVE_TRIES = 10;

/**
 * Times at which the shards of a dataset were verified. They are stored next to the shards, or, if that location cannot be
 * written, in the folder for sidecar files on this machine.
 */
export class VerifyRecord {
  readonly #places: readonly Storage[];
  readonly #shards: ReadonlySet<string>;
  readonly #lines: Map<string, Line>;
  #unsavedBytes = 0;
  #saving: Promise<void> = Promise.resolve();
  /** Where the record was saved last; null if it was not saved. */
  savedAt: string | null = null;
  /** Why the record could not be saved next to the shards; null if it could. */
  fault: string | null = null;

  private constructor(places: readonly Storage[], shards: ReadonlySet<string>, lines: Map<string, Line>) {
    this.#places = places;
    this.#shards = shards;
    this.#lines = lines;
  }

  /** Reads the record of these shards. A missing record counts as empty, and invalid lines are ignored. */
  static async open(
    location: string,
    shards: readonly NamedShard[],
    storage: StorageOptions | undefined,
  ): Promise<VerifyRecord> {
    const side = sideFolder(location);
    const places = [await openStorage(location, storage)];
    if (side !== null) places.push(await openStorage(side));
    const lines = new Map<string, Line>();
    // A location that cannot be read counts as a location without a record. If saving fails too, `fault` has the reason.
    for (const place of places) addNewer(lines, await readLines(place).catch(() => new Map()));
    return new VerifyRecord(places, new Set(shards.map(nameOf)), lines);
  }

  /**
   * Returns when a shard was last found whole by this check, in milliseconds since 1970; null if it never was, or if its
   * newest result is a fault. `decode` includes `checksums`.
   */
  wholeSince(shard: NamedShard, check: Check): number | null {
    const decode = this.#lines.get(keyOf(shard, 'decode'));
    const checksums = this.#lines.get(keyOf(shard, 'checksums'));
    const newest =
      checksums !== undefined && (decode === undefined || checksums.time > decode.time) ? checksums : decode;
    if (newest === undefined || newest.faults > 0) return null;
    const last = check === 'decode' ? decode : newest;
    return last === undefined || last.faults > 0 ? null : Date.parse(last.time);
  }

  /** Adds the result of a check that has just ended. From time to time, the record is saved. */
  add(shard: NamedShard & { readonly bytes: number }, check: Check, faults: number): void {
    const { file, crc32 } = shard;
    // The clock may have gone back, or be behind that of another machine. This result is the newest all the same.
    const known = (['checksums', 'decode'] as const).map((one) => this.#lines.get(keyOf(shard, one))?.time);
    const time = Math.max(Date.now(), ...known.map((last) => (last === undefined ? 0 : Date.parse(last) + 1)));
    this.#lines.set(keyOf(shard, check), { file, crc32, check, time: new Date(time).toISOString(), faults });
    this.#unsavedBytes += shard.bytes;
    if (this.#unsavedBytes >= SAVED_BYTES) this.#saveSoon();
  }

  /** Saves all results. If that is not possible, {@link fault} says why. */
  async save(): Promise<void> {
    this.#saveSoon();
    await this.#saving;
  }

  #saveSoon(): void {
    this.#unsavedBytes = 0;
    this.#saving = this.#saving.then(() => this.#saveNow());
  }

  async #saveNow(): Promise<void> {
    const faults: string[] = [];
    for (const place of this.#places) {
      try {
        if (place !== this.#places[0]) makeFolder(place.location);
        await this.#saveTo(place);
        this.savedAt = `${place.location}/${VERIFIED_FILE}`;
        this.fault = faults.length === 0 ? null : faults.join(' ');
        return;
      } catch (error) {
        faults.push(reasonOf(error as Error));
      }
    }
    this.savedAt = null;
    this.fault = faults.join(' ');
  }

  /** Adds the results to those of other processes. If another process saves at this moment, its results are read again. */
  async #saveTo(place: Storage): Promise<void> {
    for (let tries = 1; ; tries++) {
      const before = await place.entry(VERIFIED_FILE);
      const lines = await readLines(place);
      addNewer(lines, this.#lines);
      const text = [...lines.values()]
        .filter((line) => this.#shards.has(nameOf(line)))
        .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.check < b.check ? -1 : 1))
        .map((line) => `${JSON.stringify(line)}\n`)
        .join('');
      try {
        await place.put(
          VERIFIED_FILE,
          Buffer.from(text),
          before === null ? { ifAbsent: true } : { ifVersion: before.version },
        );
        return;
      } catch (error) {
        const isOther = error instanceof FileChangedError || error instanceof FileExistsError;
        if (!isOther || tries === SAVE_TRIES) throw error;
      }
    }
  }
}

/**
 * Selects the shards to verify. A shard is due if it was not found whole within the last `since` milliseconds. Of the due shards,
 * those are chosen that were never verified, then those whose check is the longest ago, up to the share `sample` of all bytes and
 * at least one. Ties are broken by a hash that changes each day, so that other shards are verified each day even if the record
 * cannot be saved. The chosen shards keep their order.
 */
export function dueShards<Shard extends { readonly record: ManifestShard | null; readonly bytes: number }>(
  shards: readonly Shard[],
  wholeSince: (shard: Shard) => number | null,
  { since, sample, now }: { readonly since: number; readonly sample: number; readonly now: number },
): { readonly chosen: readonly Shard[]; readonly due: number } {
  const day = Math.floor(now / 86_400_000);
  const due = shards
    .map((shard, number) => ({ shard, number, last: wholeSince(shard) ?? Number.NEGATIVE_INFINITY }))
    .filter(({ last }) => now - last >= since);
  const totalBytes = shards.reduce((sum, { bytes }) => sum + bytes, 0);
  const tie = ({ shard }: { shard: Shard }) =>
    createHash('sha256').update(`${shard.record?.file}\n${shard.record?.crc32}\n${day}`).digest('hex');
  const ordered = due
    .map((one) => ({ ...one, tie: tie(one) }))
    .sort((a, b) => (a.last === b.last ? (a.tie < b.tie ? -1 : 1) : a.last - b.last));
  let bytes = 0;
  let count = 0;
  while (count < ordered.length && (count === 0 || sample >= 1 || bytes < sample * totalBytes)) {
    bytes += ordered[count++]!.shard.bytes;
  }
  const chosen = ordered.slice(0, count).sort((a, b) => a.number - b.number);
  return { chosen: chosen.map(({ shard }) => shard), due: due.length };
}

async function readLines(place: Storage): Promise<Map<string, Line>> {
  const lines = new Map<string, Line>();
  let text: string;
  try {
    text = Buffer.from(await readWholeOf(place, VERIFIED_FILE)).toString();
  } catch (error) {
    if (error instanceof FileNotFoundError || (place.localPath !== undefined && hasNoFolder(error))) return lines;
    throw error;
  }
  for (const row of text.split('\n')) {
    const line = lineOf(row);
    if (line !== null) addNewer(lines, new Map([[keyOf(line, line.check), line]]));
  }
  return lines;
}

/**
 * A damaged line is not an error, because the record only saves work: the shard is verified again. So is a shard that was
 * found whole at a time in the future. A fault counts at any time.
 */
function lineOf(row: string): Line | null {
  try {
    const { file, crc32, check, time, faults } = JSON.parse(row) as Line;
    const isLine =
      typeof file === 'string' &&
      typeof crc32 === 'string' &&
      (check === 'checksums' || check === 'decode') &&
      Number.isFinite(Date.parse(time)) &&
      Number.isInteger(faults) &&
      faults >= 0 &&
      (faults > 0 || Date.parse(time) <= Date.now());
    return isLine ? { file, crc32, check, time, faults } : null;
  } catch {
    return null;
  }
}

function addNewer(lines: Map<string, Line>, others: ReadonlyMap<string, Line>): void {
  for (const [key, line] of others) if ((lines.get(key)?.time ?? '') < line.time) lines.set(key, line);
}

function keyOf(shard: NamedShard, check: Check): string {
  return `${nameOf(shard)} ${check}`;
}

function nameOf({ file, crc32 }: NamedShard): string {
  return `${file} ${crc32}`;
}
