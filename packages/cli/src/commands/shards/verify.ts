import { escapeControls } from '@shardtool/base/text';
import type {
  QuarantinedSample,
  RepairReport,
  VerifyProgress,
  VerifyRecordReport,
  VerifyReport,
} from '@shardtool/writer';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { duration, share, size, WORKERS_FLAG } from '../../options/flags.js';
import { QUIET_FLAG } from '../../options/output-flags.js';
import { FirstLines } from '../../terminal/first-lines.js';
import { foundFault, print, UsageError } from '../../terminal/outcome.js';
import { ProgressView } from '../../terminal/progress-view.js';
import { countLine, entriesLine } from '../../terminal/report-lines.js';
import { countOf, formatCount, formatSize } from '../../terminal/size.js';

export const verifyCommand = command({
  name: 'verify',
  summary: 'Check all bytes against their checksums, and repair damaged shards',
  details: 'Prints a line for each damaged sample, the first 20 without --verbose, and exits with 1 if there is one.',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    check: {
      choices: ['checksums', 'decode'] as const,
      default: 'checksums' as const,
      requiresArg: true,
      group: 'Input',
      placeholder: 'LEVEL',
      isCommon: true,
      describe: 'checksums compares all bytes with their checksums; decode also decodes every image completely',
    },
    since: {
      ...duration(
        '--since',
        'Skip shards that were found whole less than this time ago, such as 30d. The file "verified.jsonl" of the dataset keeps the times',
      ),
      group: 'Input',
      isCommon: true,
    },
    sample: {
      ...share(
        '--sample',
        'Verify only this share of the bytes, such as 4%: the shards that were not verified for the longest time',
      ),
      group: 'Input',
      isCommon: true,
    },
    fix: {
      type: 'boolean',
      default: false,
      group: 'Output',
      isCommon: true,
      describe: 'Rebuild damaged shards without their damaged samples; the folder "quarantine" keeps the old files',
    },
    source: {
      type: 'string',
      requiresArg: true,
      group: 'Output',
      placeholder: 'FOLDER',
      isCommon: true,
      describe: 'With --fix: folder or URL that was packed; damaged samples are restored from it',
    },
    'max-sample-bytes': {
      ...size('--max-sample-bytes', 'With --fix: maximum size of a sample that is held in memory, such as 4GiB'),
      group: 'Performance',
      defaultDescription: '1024MiB',
    },
    workers: WORKERS_FLAG,
    quiet: QUIET_FLAG,
  },
  examples: [
    ['$0 verify shards', 'Compare every byte with its checksum'],
    ['$0 verify shards --check decode', 'Also decode every image completely'],
    ['$0 verify shards --since 30d', 'Every shard once in 30 days; run it again if it is interrupted'],
    ['$0 verify shards --sample 4%', 'Once a day, this verifies everything within 25 days'],
    ['$0 verify shards --fix --source photos', 'Repair; damaged samples are restored from photos'],
  ],
  handler: async (given) => {
    const { dataset, check, since, sample, fix, source, maxSampleBytes, workers, json, quiet, verbose } = given;
    if (fix && (since !== undefined || sample !== undefined)) {
      throw new UsageError('--fix repairs the whole dataset: remove --since and --sample.');
    }
    if (sample === 0) throw new UsageError('--sample takes a share above 0, such as 4%.');
    if (fix) return repairAndReport(given);
    if (source !== undefined) throw new UsageError('--source is for repairs: also set --fix.');
    if (maxSampleBytes !== undefined) throw new UsageError('--max-sample-bytes is for repairs: also set --fix.');
    const { verify } = await import('@shardtool/writer');
    const view = json || quiet ? null : await ProgressView.open();
    const lines = new FirstLines(json || verbose);
    const report = await verify(dataset, {
      check,
      since,
      sample,
      ...(workers !== undefined && { workers }),
      onFault: (fault) => {
        view?.hide();
        const { shard, key, reason } = fault;
        const line = [shard, ...(key === undefined ? [] : [key]), reason]
          .map((value) => escapeControls(value))
          .join('\t');
        lines.add(json ? JSON.stringify(fault) : line);
      },
      ...(view !== null && { onProgress: (progress) => show(view, progress) }),
    }).finally(() => view?.hide());
    if (report.faults > 0) foundFault();
    if (json) await print(JSON.stringify(report));
    else if (report.faults > 0 || !quiet) await print([...lines.rest(), describe(report, check)].join('\n'));
  },
});

function show(view: ProgressView, { shards, totalShards }: VerifyProgress): void {
  const parts = [`${formatCount(shards)} of ${countOf(totalShards, 'shard')}`];
  view.show({ stage: 'verify', done: shards, total: totalShards, parts });
}

interface Given {
  readonly dataset: string;
  readonly check: 'checksums' | 'decode';
  readonly source: string | undefined;
  readonly maxSampleBytes: number | undefined;
  readonly workers: number | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
}

/** Repairs, and prints a line for each sample that was taken out. */
async function repairAndReport(given: Given): Promise<void> {
  const { dataset, check, source, maxSampleBytes, workers, json, quiet, verbose } = given;
  const { repair } = await import('@shardtool/writer');
  const view = json || quiet ? null : await ProgressView.open();
  const lines = new FirstLines(json || verbose);
  const tell = (sample: QuarantinedSample, isKept: boolean) => {
    view?.hide();
    const { shard, key, reason } = sample;
    const line = [shard, key, isKept ? `was kept, although ${reason}` : reason]
      .map((value) => escapeControls(value))
      .join('\t');
    lines.add(json ? JSON.stringify({ ...sample, ...(isKept && { kept: true }) }) : line);
  };
  const report = await repair(dataset, {
    check,
    onTakenOut: (sample) => tell(sample, false),
    onUnproven: (sample) => tell(sample, true),
    ...(source !== undefined && { source }),
    ...(maxSampleBytes !== undefined && { maxSampleBytes }),
    ...(workers !== undefined && { workers }),
    ...(view !== null && { onProgress: (progress: VerifyProgress) => show(view, progress) }),
  }).finally(() => view?.hide());
  if (isLoss(report)) foundFault();
  if (json) await print(JSON.stringify(report));
  else if (isLoss(report) || !quiet) await print([...lines.rest(), describeRepair(report)].join('\n'));
}

function isLoss({ takenOut, lostColumns, lostClasses, unprovenClasses, unproven }: RepairReport): boolean {
  return takenOut + lostColumns.length + lostClasses.length + unprovenClasses.length + unproven > 0;
}

function describeRepair(report: RepairReport): string {
  const { shards, samples, repairedShards, removedShards, newManifest, takenOut, restored, unproven } = report;
  const { lostColumns, lostClasses, unprovenClasses } = report;
  const isNothing = repairedShards + removedShards === 0 && !newManifest;
  if (isNothing) return `${countOf(shards, 'shard')}, ${countOf(samples, 'sample')}: nothing to repair`;
  return [
    `${countOf(repairedShards, 'shard')} repaired; the dataset has ${countOf(shards, 'shard')}, ${countOf(samples, 'sample')}`,
    ...(newManifest ? ['  dataset.json had changed since it was written, and was replaced'] : []),
    ...countLine(
      removedShards,
      'shard had no sample left and was removed',
      'shards had no sample left and were removed',
    ),
    ...countLine(
      takenOut,
      'damaged sample was removed: quarantine.jsonl lists it, and the folder quarantine keeps the damaged shard',
      'damaged samples were removed: quarantine.jsonl lists them, and the folder quarantine keeps the damaged shards',
    ),
    ...countLine(restored, 'sample was restored', 'samples were restored'),
    ...(takenOut === 0 && repairedShards > 0 ? ['  the folder quarantine keeps the replaced files'] : []),
    ...countLine(
      unproven,
      'sample can be decoded and was kept, although a checksum of it is lost',
      'samples can be decoded and were kept, although checksums of them are lost',
    ),
    ...countLine(
      lostColumns.length,
      `column of an index has lost values: ${escapeControls(lostColumns[0] ?? '')}`,
      `columns of indexes have lost values: ${escapeControls(lostColumns.join(', '))}`,
    ),
    ...countLine(
      lostClasses.length,
      `class has lost its name: ${lostClasses[0]}; write it into dataset.json, and remove the line "crc32" there`,
      `classes have lost their names: ${lostClasses.join(', ')}; write them into dataset.json, and remove the line "crc32" there`,
    ),
    ...countLine(
      unprovenClasses.length,
      `class name is only in the damaged dataset.json; check that it is right: ${escapeControls(unprovenClasses[0] ?? '')}`,
      `class names are only in the damaged dataset.json; check that they are right: ${escapeControls(unprovenClasses.join(', '))}`,
    ),
  ].join('\n');
}

function describe(report: VerifyReport, check: Given['check']): string {
  const { shards, samples, bytes, faults, damagedSamples, warnings, checksums } = report;
  const whole = check === 'decode' ? ' and all images decode' : '';
  let outcome = checksums ? `OK, all checksums match${whole}` : `OK, all headers are valid${whole}`;
  if (faults > 0) {
    const others = faults - damagedSamples;
    const also = others > 0 ? ` and ${countOf(others, 'fault')} of whole shards` : '';
    outcome = `${countOf(damagedSamples, 'damaged sample')}${also}`;
  }
  const odd = warnings > 0 ? `; ${countOf(warnings, 'image')} decoded with warnings` : '';
  const unknown = checksums
    ? ''
    : '; without an index there are no checksums to compare ("shardtool index" writes one)';
  const size = `${countOf(shards, 'shard')}, ${countOf(samples, 'sample')}, ${formatSize(bytes)}`;
  const isDone = report.record !== null && shards === 0;
  return [
    ...(isDone ? [] : [`${size}: ${outcome}${odd}${unknown}`]),
    ...entriesLine(report.skippedEntries),
    ...(report.record === null ? [] : recordLines(report.record)),
  ].join('\n');
}

/** What remains to be verified, and where that is recorded. */
function recordLines({ dueShards, oldest, file, fault }: VerifyRecordReport): string[] {
  const remaining =
    dueShards === 0 ? 'No shard remains to be verified' : `${countOf(dueShards, 'shard')} still to verify`;
  const since = oldest === null ? '' : `; the check of every shard is from ${oldest.slice(0, 10)} or later`;
  const lines = [`${remaining}${since}`];
  if (fault !== null) {
    const place = file === null ? 'is not kept, and the next call begins again' : `is in ${escapeControls(file)}`;
    lines.push(`The record of checks cannot be written next to the shards and ${place}: ${escapeControls(fault)}`);
  }
  return lines;
}
