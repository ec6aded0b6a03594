import { readFile } from 'node:fs/promises';
import { FileError, reasonOf, ShardtoolError, writeAtomically } from '@shardtool/base';
import { type Dataset, type InspectReport, openDataset } from '@shardtool/reader';
import { thumbnailOf } from '../view/pictures/pictures.js';
import { REPORT_MARK, reportPage, type Shown, shownIn } from './report-page.js';

const SIDE = 160;
/** Number of pictures that are decoded concurrently. */
const IN_FLIGHT = 4;
/** Position of the mark of a report. */
const HEAD_BYTES = 1024;

/**
 * Throws {@link FileError} if there is a file at `path` that is not a report of shardtool, because only reports are replaced. Call
 * this before the work begins.
 */
export async function checkReportPath(path: string): Promise<void> {
  const content = await readFile(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return null;
    throw new FileError({ path }, `${path} cannot be read (${reasonOf(cause)}). Choose another file with --report.`, {
      cause,
    });
  });
  if (content === null || content.subarray(0, HEAD_BYTES).includes(REPORT_MARK)) return;
  throw new FileError(
    { path },
    `${path} is not a report of shardtool, so it is not replaced: choose another file with --report.`,
  );
}

/**
 * Writes the report with a picture of every sample that it names, and holds these pictures in memory. If `location` contains a
 * token, the report does not show it. Throws {@link FileError}.
 */
export async function writeReport(
  report: InspectReport,
  path: string,
  location: string,
  against: string | undefined,
): Promise<void> {
  await using dataset = await openDataset(location);
  await using other = against === undefined ? null : await openDataset(against);
  const pictures = new Map<string, Uint8Array | null>();
  const wanted = [...new Map(shownIn(report).map((shown) => [nameOf(shown), shown])).values()];
  for (let from = 0; from < wanted.length; from += IN_FLIGHT) {
    const made = wanted.slice(from, from + IN_FLIGHT).map(async (shown) => {
      pictures.set(nameOf(shown), await pictureOf(shown.from === 'dataset' ? dataset : other!, shown.index));
    });
    await Promise.all(made);
  }
  await writeAtomically(path, Buffer.from(reportPage(report, (shown) => pictures.get(nameOf(shown)) ?? null)));
}

function nameOf({ from, index }: Shown): string {
  return `${from} ${index}`;
}

/** Null if no picture can be shown. If that is the finding, the report gives the reason. */
async function pictureOf(dataset: Dataset, index: number): Promise<Uint8Array | null> {
  try {
    return (await thumbnailOf(dataset, index, SIDE)).bytes;
  } catch (error) {
    if (error instanceof ShardtoolError) return null;
    throw error;
  }
}
