/** What is wrong with a dataset: copies, leaks into another dataset, and images that are unlike the others, ranked. */
import { type ColumnValue, HashTable, OptionError, withSentences } from '@shardtool/format';
import type { Dataset } from '../dataset/dataset.js';
import { openDataset } from '../dataset/open.js';
import { FINDINGS, type FindingName, findingOf, hasUsefulHash } from './findings.js';
import { keepColumns, type MeasureOptions, measureDataset } from './measure-dataset.js';
import { INSPECT_PREFIX, Measures } from './measures.js';
import { Groups, joinNear } from './near-duplicates.js';

export interface InspectOptions extends MeasureOptions {
  /** A second dataset: samples that both have are leaks. */
  readonly against?: string | undefined;
  /** How many samples of a finding, and how many groups, are named. Default 48; all are counted. */
  readonly most?: number | undefined;
}

/** A sample that is named. */
export interface InspectedSample {
  readonly number: number;
  readonly key: string;
  /** Name of its class; null where it has none. */
  readonly class: string | null;
  /** What it is ranked by. */
  readonly value: number;
}

/** Samples of which there is something to say. */
export interface InspectFinding {
  readonly name: FindingName;
  readonly help: string;
  readonly count: number;
  /** The first by rank. */
  readonly samples: readonly InspectedSample[];
}

/** Images that are copies of each other. */
export interface InspectGroup {
  readonly size: number;
  /** They are of more than one class. */
  readonly isAcrossClasses: boolean;
  readonly samples: readonly InspectedSample[];
  /** Those of the second dataset. */
  readonly others: readonly InspectedSample[];
}

export interface InspectGroups {
  /** How many groups there are, and how many of them are across classes. */
  readonly groups: number;
  readonly acrossClasses: number;
  /** Samples in them. */
  readonly samples: number;
  /** Those across classes first, then by size. */
  readonly first: readonly InspectGroup[];
}

export interface InspectReport {
  readonly location: string;
  readonly samples: number;
  /** Samples whose measures lay beside their shards already. */
  readonly known: number;
  /** False where the columns could not be kept, since nothing can lie beside the files: `where` does not know them. */
  readonly isKept: boolean;
  /** Samples that cannot be decoded, or have no image: how many, and the first. */
  readonly bad: {
    readonly count: number;
    readonly samples: readonly (InspectedSample & { readonly reason: string })[];
  };
  readonly findings: readonly InspectFinding[];
  /** Equal bytes. */
  readonly duplicates: InspectGroups;
  /** Of 64 bits of the perceptual hash at most 4 differ, and the bytes are not all equal. */
  readonly nearDuplicates: InspectGroups;
  /** Copies between the two datasets; null without a second one. */
  readonly leaks: InspectGroups | null;
  /** Of red, green and blue over all images at 256x256, 0 to 1: what the step `normalize` takes. Null without an image. */
  readonly normalize: { readonly mean: readonly number[]; readonly std: readonly number[] } | null;
}

const MOST = 48;
/** Members of a group that are named. */
const MOST_OF_GROUP = 12;

/**
 * Looks at every image once, in worker threads, and keeps what it measured as columns beside each shard, `inspect.NAME`, which
 * `where` knows. What lies there is not measured again. Throws {@link OptionError} for a mixture, {@link FileError} where
 * a dataset is not there, cannot be read, or the columns cannot be written, DamagedShardError and ShardIndexError of its shards.
 */
export async function inspect(location: string, options: InspectOptions = {}): Promise<InspectReport> {
  return withSentences(async () => {
    await using dataset = await openOne(location);
    await using other = options.against === undefined ? null : await openOne(options.against);
    const { measures, known, isKept } = await measureDataset(dataset, options);
    const against = other === null ? null : (await measureDataset(other, options)).measures;
    const found = findCopies(measures, against);
    await keepGroups(dataset, found, other);
    return reportOf({ dataset, other, measures, known, isKept }, found, options.most ?? MOST);
  });
}

async function openOne(location: string): Promise<Dataset> {
  const dataset = await openDataset(location);
  if (dataset.mixture === null) return dataset;
  await dataset.close();
  throw new OptionError({ path: location }, `${location} is a mixture: inspect the datasets that it is made of.`);
}

/** Who is in which group, by number; those of the second dataset are numbered behind those of the first. */
interface Copies {
  readonly exact: Groups;
  readonly near: Groups;
  /** Samples of the first, and of both. */
  readonly own: number;
  readonly total: number;
}

function findCopies(measures: Measures, against: Measures | null): Copies {
  const own = measures.samples;
  const total = own + (against?.samples ?? 0);
  const all = against === null ? measures : new Measures(total);
  if (against !== null) {
    all.putShard(0, measures);
    all.putShard(own, against);
  }
  const exact = new Groups(total);
  const near = new Groups(total);
  const { crc32, bytes, hash, isMeasured } = all;
  const isSame = (a: number, b: number) =>
    crc32[a] === crc32[b] &&
    bytes[a] === bytes[b] &&
    hash[2 * a] === hash[2 * b] &&
    hash[2 * a + 1] === hash[2 * b + 1];
  const table = new HashTable(Uint32Array, (entry) => crc32[entry - 1]!, total);
  for (let row = 0; row < total; row++) {
    if (isMeasured[row] === 0) continue;
    const first = table.place(row + 1, crc32[row]!, (entry) => isSame(entry - 1, row));
    if (first === 0) continue;
    exact.join(first - 1, row);
    near.join(first - 1, row);
  }
  const owners: number[] = [];
  for (let row = 0; row < total; row++) if (exact.first(row) === row && hasUsefulHash(all, row)) owners.push(row);
  const hashes = new Uint32Array(4 * owners.length);
  const ownerOf = new Uint32Array(2 * owners.length);
  owners.forEach((row, i) => {
    hashes.set(all.hash.subarray(2 * row, 2 * row + 2), 4 * i);
    hashes.set(all.innerHash.subarray(2 * row, 2 * row + 2), 4 * i + 2);
    ownerOf.fill(row, 2 * i, 2 * i + 2);
  });
  joinNear(hashes, ownerOf, near);
  return { exact, near, own, total };
}

/** The members of each group of two or more, by the number of the first. */
function membersOf(groups: Groups, total: number): Map<number, number[]> {
  const members = new Map<number, number[]>();
  for (let row = 0; row < total; row++) {
    const first = groups.first(row);
    if (first === row) continue;
    const known = members.get(first);
    if (known === undefined) members.set(first, [first, row]);
    else known.push(row);
  }
  return members;
}

/** Adds the columns that say of which copies a sample is one. */
async function keepGroups(dataset: Dataset, copies: Copies, other: Dataset | null): Promise<void> {
  const { own, total } = copies;
  const exact = await firstKeys(membersOf(copies.exact, own), dataset);
  const near = await firstKeys(membersOf(copies.near, own), dataset);
  const leaks = other === null ? null : await leakKeys(membersOf(copies.near, total), own, other);
  for (const [number, shard] of dataset.shards.entries()) {
    const first = dataset.files.firstSample[number]!;
    const found = await shard.loadInspection?.();
    if (found === undefined || found === null) continue;
    const rows = Array.from({ length: shard.samples }, (_, row) => first + row);
    const columns = new Map(found.columns);
    const put = (name: string, values: ReadonlyMap<number, string>) => {
      const column: ColumnValue[] = rows.map((row) => values.get(row) ?? null);
      columns.set(INSPECT_PREFIX + name, { type: 'string', values: column });
    };
    put('duplicate', exact);
    put('near', near);
    if (leaks !== null) put('leak', leaks);
    await keepColumns(shard, columns, found.totals);
  }
}

/** Of each member of a group the key of the first, which stays when the dataset grows. */
async function firstKeys(groups: ReadonlyMap<number, number[]>, dataset: Dataset): Promise<Map<number, string>> {
  const names = await namesOf(dataset, [...groups.keys()]);
  const keys = new Map<number, string>();
  for (const [first, rows] of groups) for (const row of rows) keys.set(row, names.get(first)!.key);
  return keys;
}

/** Of each sample that the second dataset has, too, the key that it has there. */
async function leakKeys(
  groups: ReadonlyMap<number, number[]>,
  own: number,
  other: Dataset,
): Promise<Map<number, string>> {
  const leaks = [...groups.values()].filter((rows) => isLeak(rows, own));
  const names = await namesOf(
    other,
    leaks.map((rows) => rows.find((row) => row >= own)! - own),
  );
  const keys = new Map<number, string>();
  for (const rows of leaks) {
    const { key } = names.get(rows.find((row) => row >= own)! - own)!;
    for (const row of rows) if (row < own) keys.set(row, key);
  }
  return keys;
}

function isLeak(rows: readonly number[], own: number): boolean {
  return rows.some((row) => row < own) && rows.some((row) => row >= own);
}

interface Name {
  readonly key: string;
  readonly cls: number;
}

/** Keys and class numbers of these samples. */
async function namesOf({ shards, files }: Dataset, numbers: readonly number[]): Promise<Map<number, Name>> {
  const names = new Map<number, Name>();
  const sorted = Float64Array.from(new Set(numbers)).sort();
  let next = 0;
  for (const [shard, file] of shards.entries()) {
    const first = files.firstSample[shard]!;
    const end = first + file.samples;
    if (next >= sorted.length) break;
    if (sorted[next]! >= end) continue;
    const { key, cls } = await file.loadParts(['key', 'cls']);
    for (; next < sorted.length && sorted[next]! < end; next++) {
      const row = sorted[next]! - first;
      names.set(sorted[next]!, { key: key[row]!, cls: cls[row]! });
    }
  }
  return names;
}

/** Class numbers of all samples. */
async function classesOf({ shards, files, size }: Dataset): Promise<Int32Array> {
  const all = new Int32Array(size);
  for (const [shard, file] of shards.entries()) all.set((await file.loadParts(['cls'])).cls, files.firstSample[shard]!);
  return all;
}

interface Inspected {
  readonly dataset: Dataset;
  readonly other: Dataset | null;
  readonly measures: Measures;
  readonly known: number;
  readonly isKept: boolean;
}

async function reportOf(
  { dataset, other, measures, known, isKept }: Inspected,
  copies: Copies,
  most: number,
): Promise<InspectReport> {
  const { own, total } = copies;
  const classes = await classesOf(dataset);
  const findings = (Object.keys(FINDINGS) as FindingName[]).map((name) => ({
    name,
    ...findingOf(name, measures, most),
  }));
  const exact = ranked([...membersOf(copies.exact, own).values()], classes);
  const nearAll = [...membersOf(copies.near, own).values()];
  const near = ranked(
    nearAll.filter((rows) => rows.some((row) => copies.exact.first(row) !== copies.exact.first(rows[0]!))),
    classes,
  );
  const leaks =
    other === null
      ? null
      : ranked(
          [...membersOf(copies.near, total).values()].filter((rows) => isLeak(rows, own)),
          classes,
        );
  const bad = [...measures.errors].sort(([a], [b]) => a - b);

  const shown = [exact, near, leaks ?? []].flatMap((groups) => groups.slice(0, most).flatMap(shownOf));
  const wanted = [...findings.flatMap(({ rows }) => rows), ...bad.slice(0, most).map(([row]) => row), ...shown];
  const names = await namesOf(
    dataset,
    wanted.filter((row) => row < own),
  );
  const otherNames = other === null ? new Map<number, Name>() : await namesOf(other, othersOf(shown, own));
  const sample = (row: number, value: number): InspectedSample => {
    const isOwn = row < own;
    const number = isOwn ? row : row - own;
    const { key, cls } = (isOwn ? names : otherNames).get(number)!;
    const { classes: list } = isOwn ? dataset : other!;
    return { number, key, class: cls < 0 ? null : (list[cls] ?? String(cls)), value };
  };
  const groupsOf = (groups: readonly RankedGroup[]): InspectGroups => ({
    groups: groups.length,
    acrossClasses: groups.filter(({ isAcrossClasses }) => isAcrossClasses).length,
    samples: groups.reduce((sum, { rows }) => sum + rows.filter((row) => row < own).length, 0),
    first: groups.slice(0, most).map((group) => {
      const members = shownOf(group);
      return {
        size: group.rows.length,
        isAcrossClasses: group.isAcrossClasses,
        samples: members.filter((row) => row < own).map((row) => sample(row, group.rows.length)),
        others: members.filter((row) => row >= own).map((row) => sample(row, group.rows.length)),
      };
    }),
  });
  return {
    location: dataset.location,
    samples: own,
    known,
    isKept,
    bad: {
      count: bad.length,
      samples: bad.slice(0, most).map(([row, reason]) => ({ ...sample(row, 0), reason })),
    },
    findings: findings.map(({ name, count, rows, values }) => ({
      ...{ name, help: FINDINGS[name].help, count },
      samples: rows.map((row, i) => sample(row, values[i]!)),
    })),
    duplicates: groupsOf(exact),
    nearDuplicates: groupsOf(near),
    leaks: leaks === null ? null : groupsOf(leaks),
    normalize: normalizationFrom(measures.totals),
  };

  /** The first of each dataset. */
  function shownOf({ rows }: RankedGroup): number[] {
    const others = rows.filter((row) => row >= own).slice(0, MOST_OF_GROUP / 2);
    return [...rows.filter((row) => row < own).slice(0, MOST_OF_GROUP - others.length), ...others];
  }
}

function othersOf(rows: readonly number[], own: number): number[] {
  return rows.filter((row) => row >= own).map((row) => row - own);
}

interface RankedGroup {
  readonly rows: readonly number[];
  readonly isAcrossClasses: boolean;
}

/** Across classes first, then by size, then by the first sample. `classes`: of the samples of the first dataset. */
function ranked(groups: readonly (readonly number[])[], classes: Int32Array): RankedGroup[] {
  return groups
    .map((rows) => {
      const own = rows.filter((row) => row < classes.length);
      return { rows, isAcrossClasses: own.some((row) => classes[row] !== classes[own[0]!]) };
    })
    .sort(
      (a, b) =>
        Number(b.isAcrossClasses) - Number(a.isAcrossClasses) ||
        b.rows.length - a.rows.length ||
        a.rows[0]! - b.rows[0]!,
    );
}

/** Means of means, since all images have as many pixels. */
function normalizationFrom(totals: Float64Array): InspectReport['normalize'] {
  const images = totals[6]!;
  if (images === 0) return null;
  const mean = [0, 1, 2].map((channel) => totals[channel]! / images);
  const variance = mean.map((value, channel) => totals[3 + channel]! / images - value * value);
  const rounded = (value: number) => Math.round((value / 255) * 1e4) / 1e4;
  return { mean: mean.map(rounded), std: variance.map((value) => rounded(Math.sqrt(Math.max(0, value)))) };
}
