/** From the runs of all rounds to one row a contestant, and to the Markdown table. */
import os from 'node:os';
import { median } from './measure.mjs';

/**
 * `runs`: [{ id, round, result }]. One row a contestant, in the order given: medians over the rounds. `timesSlower` is the
 * reference's rate by the contestant's, `ofLimit` the contestant's by the limit's, each the median of the ratios within a
 * round; null where there is nothing to compare with.
 */
export function summarise(contestants, runs, { reference, limit }) {
  const rateIn = new Map(runs.map(({ id, round, result }) => [`${id} ${round}`, result.imagesPerSecond]));
  /** Rate of `id` by that of `other` in each round that has both. */
  const ratio = (id, other) => {
    const ratios = [];
    for (const run of runs) {
      const otherRate = rateIn.get(`${other} ${run.round}`);
      if (run.id === id && otherRate !== undefined) ratios.push(run.result.imagesPerSecond / otherRate);
    }
    return ratios.length === 0 ? null : median(ratios);
  };
  return contestants.flatMap(({ id, peakMemoryBytes }) => {
    const results = runs.filter((run) => run.id === id).map(({ result }) => result);
    if (results.length === 0) return [];
    const { name, version, imagesPerEpoch, notes } = results[0];
    const values = (field) => results.map((result) => result[field]);
    const toReference = ratio(id, reference);
    return {
      id,
      name,
      version,
      imagesPerSecond: median(values('imagesPerSecond')),
      slowest: Math.min(...values('imagesPerSecond')),
      fastest: Math.max(...values('imagesPerSecond')),
      timesSlower: toReference === null ? null : 1 / toReference,
      ofLimit: ratio(id, limit),
      batchWaitP50Ms: median(values('batchWaitP50Ms')),
      batchWaitP99Ms: median(values('batchWaitP99Ms')),
      firstBatchMs: median(values('firstBatchMs')),
      peakMemoryBytes,
      imagesPerEpoch,
      rounds: results.length,
      notes,
    };
  });
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

/** What the chart shows of a report. */
export function publishedOf({ machine, photos, settings, rows }) {
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
