/** The report of an inspection: counts, and the samples that are worth a look. */
import { totalOf } from '@shardtool/base';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import { type Copies, isLeak, membersOf } from './copies.js';
import { FINDINGS, type FindingName, findingOf } from './findings.js';
import type { Measures } from './measures.js';
import { classesOf, namesOf, type SampleName } from './sample-names.js';

/** A sample that the report lists. */
export interface InspectedSample {
  readonly index: number;
  readonly key: string;
  /** Name of the class. Null if the sample has no class. */
  readonly class: string | null;
  /** The value by which the sample is ranked. */
  readonly value: number;
}

/** A finding with its samples. */
export interface InspectFinding {
  readonly name: FindingName;
  readonly help: string;
  readonly count: number;
  /** The first samples by rank. */
  readonly samples: readonly InspectedSample[];
}

/** A group of images that are copies of each other. */
export interface InspectGroup {
  readonly size: number;
  /** The images belong to more than one class. */
  readonly isAcrossClasses: boolean;
  readonly samples: readonly InspectedSample[];
  /** Samples of the second dataset. */
  readonly others: readonly InspectedSample[];
}

export interface InspectGroups {
  /** Number of groups. */
  readonly groups: number;
  /** Number of groups with more than one class. */
  readonly acrossClasses: number;
  /** Number of samples in all groups. */
  readonly samples: number;
  /** The first groups: those with more than one class first, then the largest. */
  readonly first: readonly InspectGroup[];
}

export interface InspectReport {
  readonly location: string;
  readonly samples: number;
  /** Number of samples whose measures were already stored. */
  readonly known: number;
  /** False if the columns could not be stored, because some files cannot have sidecars. Then `where` cannot use the columns. */
  readonly isKept: boolean;
  /** Samples that cannot be decoded or have no image: their number, and the first ones. */
  readonly bad: {
    readonly count: number;
    readonly samples: readonly (InspectedSample & { readonly reason: string })[];
  };
  readonly findings: readonly InspectFinding[];
  /** Groups of images with equal bytes. */
  readonly duplicates: InspectGroups;
  /** Groups of images whose perceptual hashes differ in at most 4 of 64 bits, and whose bytes are not all equal. */
  readonly nearDuplicates: InspectGroups;
  /** Groups with images of both datasets. Null if there is no second dataset. */
  readonly leaks: InspectGroups | null;
  /** Mean and standard deviation of red, green and blue over all images at 256x256, 0 to 1, for the step `normalize`. Null if there is no image. */
  readonly normalize: { readonly mean: readonly number[]; readonly std: readonly number[] } | null;
}

/** Maximum number of listed members per group. */
const MAX_OF_GROUP = 12;

/** The inspected datasets and their measures. */
export interface Inspected {
  readonly dataset: StoredDataset;
  readonly other: StoredDataset | null;
  readonly measures: Measures;
  readonly known: number;
  readonly isKept: boolean;
}

/** Makes the report. `most` is the maximum number of samples and of groups to list per finding. */
export async function reportOf(
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
  const otherNames = other === null ? new Map<number, SampleName>() : await namesOf(other, othersOf(shown, own));
  const sample = (row: number, value: number): InspectedSample => {
    const isOwn = row < own;
    const index = isOwn ? row : row - own;
    const { key, cls } = (isOwn ? names : otherNames).get(index)!;
    const { classes: list } = isOwn ? dataset : other!;
    return { index, key, class: cls < 0 ? null : (list[cls] ?? String(cls)), value };
  };
  const groupsOf = (groups: readonly RankedGroup[]): InspectGroups => ({
    groups: groups.length,
    acrossClasses: groups.filter(({ isAcrossClasses }) => isAcrossClasses).length,
    samples: totalOf(groups, ({ rows }) => rows.filter((row) => row < own).length),
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
      name,
      help: FINDINGS[name].help,
      count,
      samples: rows.map((row, i) => sample(row, values[i]!)),
    })),
    duplicates: groupsOf(exact),
    nearDuplicates: groupsOf(near),
    leaks: leaks === null ? null : groupsOf(leaks),
    normalize: normalizationFrom(measures.totals),
  };

  /** The listed members of a group: the first of each dataset. */
  function shownOf({ rows }: RankedGroup): number[] {
    const others = rows.filter((row) => row >= own).slice(0, MAX_OF_GROUP / 2);
    return [...rows.filter((row) => row < own).slice(0, MAX_OF_GROUP - others.length), ...others];
  }
}

function othersOf(rows: readonly number[], own: number): number[] {
  return rows.filter((row) => row >= own).map((row) => row - own);
}

interface RankedGroup {
  readonly rows: readonly number[];
  readonly isAcrossClasses: boolean;
}

/** Ranks groups: those with more than one class first, then the largest, then by the first sample. `classes` are the class numbers of the samples of the first dataset. */
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

/** Mean and standard deviation over all pixels, from the means of images, because all images have the same number of pixels. */
function normalizationFrom(totals: Float64Array): InspectReport['normalize'] {
  const images = totals[6]!;
  if (images === 0) return null;
  const mean = [0, 1, 2].map((channel) => totals[channel]! / images);
  const variance = mean.map((value, channel) => totals[3 + channel]! / images - value * value);
  const rounded = (value: number) => Math.round((value / 255) * 1e4) / 1e4;
  return { mean: mean.map(rounded), std: variance.map((value) => rounded(Math.sqrt(Math.max(0, value)))) };
}
