/** Turns the runs of all rounds into one row per contestant, and into the Markdown table. */
import fs from 'node:fs';
import os from 'node:os';
import { drawPictures } from '../pictures/run.mjs';
import { COMPARED_WITH, CONTESTANTS, READS_OTHER_PIXELS } from './contestants.mjs';
import { median } from './measure.mjs';

/**
 * One row of medians per contestant that ran, in the order of the table. `timesSlower` is the reference's rate divided by the
 * contestant's, and `ofLimit` the contestant's divided by the limit's. Each is the median of the ratios within a round, or
 * null if no round has both.
 */
export function summarise({ runs, memory, photos }) {
  const { reference, limit } = COMPARED_WITH;
  const rateIn = new Map(runs.map(({ id, round, result }) => [`${id} ${round}`, result.imagesPerSecond]));
  /** Rate of `id` divided by that of `other`, for each round that has both. */
  const ratio = (id, other) => {
    const ratios = runs
      .filter((run) => run.id === id && rateIn.has(`${other} ${run.round}`))
      .map((run) => run.result.imagesPerSecond / rateIn.get(`${other} ${run.round}`));
    return ratios.length === 0 ? null : median(ratios);
  };
  const megapixels = photos.pixels / photos.count / 1e6;
  return CONTESTANTS.flatMap(({ id, reads }) => {
    const results = runs.filter((run) => run.id === id).map(({ result }) => result);
    if (results.length === 0) return [];
    const { name, version, imagesPerEpoch, notes } = results[0];
    const values = (field) => results.map((result) => result[field]);
    const imagesPerSecond = median(values('imagesPerSecond'));
    const toReference = ratio(id, reference);
    return {
      id,
      name,
      version,
      imagesPerSecond,
      slowest: Math.min(...values('imagesPerSecond')),
      fastest: Math.max(...values('imagesPerSecond')),
      megapixelsPerSecond: READS_OTHER_PIXELS.has(reads) ? null : imagesPerSecond * megapixels,
      cpuSecondsPer1000: median(values('cpuSecondsPer1000')),
      timesSlower: toReference === null ? null : 1 / toReference,
      ofLimit: ratio(id, limit),
      batchWaitP50Ms: median(values('batchWaitP50Ms')),
      batchWaitP99Ms: median(values('batchWaitP99Ms')),
      firstBatchMs: median(values('firstBatchMs')),
      peakMemoryBytes: memory.find((entry) => entry.id === id)?.peakMemoryBytes ?? null,
      imagesPerEpoch,
      rounds: results.length,
      notes,
    };
  });
}

/**
 * Merges reports that were made in pieces, with the same photos and settings. Rounds of different pieces are different
 * rounds. The largest peak of memory counts. Runs during which other programs took more than the share `mostOthers` of the
 * CPU time do not count.
 */
export function mergeReports(reports, mostOthers = 1) {
  const [first] = reports;
  const settingsOf = ({ photos, settings }) =>
    JSON.stringify([photos, settings.workers, settings.batch, settings.epochs]);
  const other = reports.find((report) => settingsOf(report) !== settingsOf(first));
  if (other !== undefined) {
    throw new Error(`These reports have different settings: ${settingsOf(first)} and ${settingsOf(other)}.`);
  }
  const runs = reports.flatMap((report, piece) =>
    report.runs
      .filter(({ result }) => (result.othersCpuShare ?? 0) <= mostOthers)
      .map((run) => ({ ...run, round: `${piece + 1}.${run.round}` })),
  );
  const memory = CONTESTANTS.map(({ id }) => {
    const peaks = reports.flatMap((report) => report.memory.filter((entry) => entry.id === id));
    const peak = Math.max(0, ...peaks.map(({ peakMemoryBytes }) => peakMemoryBytes ?? 0));
    return { id, peakMemoryBytes: peak === 0 ? null : peak };
  });
  const ran = new Set(runs.map(({ id }) => id));
  const missing = reports.flatMap((report) => report.missing).filter(({ id }) => !ran.has(id));
  const most = Math.max(...CONTESTANTS.map(({ id }) => runs.filter((run) => run.id === id).length));
  return { ...first, settings: { ...first.settings, rounds: most }, memory, missing, runs };
}

/** Writes the data of README's chart from a report, and draws the chart. */
export function publish(report) {
  fs.writeFileSync(new URL('results.json', import.meta.url), `${JSON.stringify(publishedOf(report), null, 2)}\n`);
  drawPictures();
}

export function describeMachine() {
  const cpus = os.cpus();
  return {
    cpu: cpus[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryBytes: os.totalmem(),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
  };
}

/** The data of the chart. */
function publishedOf({ machine, photos, settings, rows }) {
  return {
    machine: `${machine.cores} cores of ${machine.cpu}`,
    photos: `${integer(photos.count)} photos of ${integer(photos.bytes / photos.count / 1000)} KB, ${settings.workers} workers, in the page cache`,
    rows: rows.map(({ id, imagesPerSecond, slowest, fastest }) => ({
      id,
      imagesPerSecond: Math.round(imagesPerSecond),
      slowest: Math.round(slowest),
      fastest: Math.round(fastest),
    })),
  };
}

export function toMarkdown({ machine, photos, settings, rows, missing }) {
  const head = [
    'loader',
    'images/s',
    'range',
    'Mpixel/s',
    'CPU s per 1,000',
    'shardtool is',
    'of the limit',
    'p50 wait',
    'p99 wait',
    'first batch',
    'memory',
  ];
  const ratio = (value, unit) => (value === null ? '-' : `${value.toFixed(2)}${unit}`);
  const body = rows.map((row) => [
    `${row.name} (${row.version})`,
    integer(row.imagesPerSecond),
    `${integer(row.slowest)} - ${integer(row.fastest)}`,
    row.megapixelsPerSecond === null ? '-' : integer(row.megapixelsPerSecond),
    row.cpuSecondsPer1000.toFixed(2),
    ratio(row.timesSlower, ' x'),
    ratio(row.ofLimit, ''),
    `${integer(row.batchWaitP50Ms)} ms`,
    `${integer(row.batchWaitP99Ms)} ms`,
    `${integer(row.firstBatchMs)} ms`,
    row.peakMemoryBytes === null ? '-' : `${integer(row.peakMemoryBytes / 1e6)} MB`,
  ]);
  const lines = [head, ['---', ...head.slice(1).map(() => '---:')], ...body].map((cells) => `| ${cells.join(' | ')} |`);
  const notes = rows.filter((row) => row.notes !== '').map((row) => `- ${row.name}: ${row.notes}`);
  const absent = missing.map(({ id, reason }) => `- missing: ${id}: ${reason}`);
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}. ${integer(photos.count)} photos of`,
    `${integer(photos.bytes / photos.count)} bytes on average, ${settings.workers} workers, batches of ${settings.batch}, epochs: ` +
      `${settings.epochs - 1} counted after one to warm up, medians of ${settings.rounds} rounds.`,
    '',
    ...lines,
    '',
    ...notes,
    ...absent,
  ].join('\n');
}

function integer(value) {
  return Math.round(value).toLocaleString('en-US');
}
