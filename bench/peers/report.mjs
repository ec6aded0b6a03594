/** From the runs of all rounds to one row a contestant, and to the Markdown table. */
import os from 'node:os';
import { median } from './measure.mjs';

/**
 * `runs`: [{ id, round, result }]. One row a contestant, in the order given: medians over the rounds, and `timesSlower`,
 * the median over the rounds of the reference's rate by the contestant's in the same round.
 */
export function summarise(contestants, runs, reference) {
  const rateIn = new Map(runs.map(({ id, round, result }) => [`${id} ${round}`, result.imagesPerSecond]));
  return contestants.flatMap(({ id, peakMemoryBytes }) => {
    const own = runs.filter((run) => run.id === id);
    if (own.length === 0) return [];
    const middle = (field) => median(own.map(({ result }) => result[field]));
    const ratios = own
      .map(({ round, result }) => (rateIn.get(`${reference} ${round}`) ?? Number.NaN) / result.imagesPerSecond)
      .filter(Number.isFinite);
    const rates = own.map(({ result }) => result.imagesPerSecond);
    const { name, version, imagesPerEpoch, notes } = own[0].result;
    return {
      id,
      name,
      version,
      imagesPerSecond: median(rates),
      slowest: Math.min(...rates),
      fastest: Math.max(...rates),
      timesSlower: ratios.length === 0 ? null : median(ratios),
      batchWaitP50Ms: middle('batchWaitP50Ms'),
      batchWaitP99Ms: middle('batchWaitP99Ms'),
      firstBatchMs: middle('firstBatchMs'),
      peakMemoryBytes,
      imagesPerEpoch,
      rounds: own.length,
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

export function toMarkdown({ machine, photos, settings, rows, missing }) {
  const head = [
    'loader',
    'images/s',
    'slowest - fastest',
    'shardtool is',
    'p50 wait',
    'p99 wait',
    'first batch',
    'peak memory',
  ];
  const body = rows.map((row) => [
    `${row.name} (${row.version})`,
    integer(row.imagesPerSecond),
    `${integer(row.slowest)} - ${integer(row.fastest)}`,
    row.timesSlower === null ? '-' : `${row.timesSlower.toFixed(2)} x`,
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
    `${integer(photos.bytes / photos.count)} bytes on average, ${settings.workers} workers, batches of ${settings.batch}, ` +
      `${settings.epochs - 1} epochs counted after one to warm up, medians of ${settings.rounds} rounds.`,
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
