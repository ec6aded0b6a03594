import { escapeControls } from '@shardtool/base/text';
import type { InspectFinding, InspectGroups, InspectReport } from '@shardtool/reader';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { WORKERS_FLAG, wholeNumber } from '../../options/flags.js';
import { print } from '../../terminal/outcome.js';
import { ProgressView } from '../../terminal/progress-view.js';
import { countOf, formatCount } from '../../terminal/size.js';

/** Number of samples of a finding to print. The report has more. */
const PRINTED = 5;

export const inspectCommand = command({
  name: 'inspect',
  summary: 'Find duplicates, leaks, and dark, bright, blurry or empty images',
  details:
    'Also computes mean and standard deviation for normalize. The measurements are stored next to the shards, as columns for --where.',
  arguments: { dataset: DATASET_ARGUMENT },
  options: {
    against: {
      type: 'string',
      requiresArg: true,
      group: 'Input',
      placeholder: 'DATASET',
      isCommon: true,
      describe: 'Second dataset: list images that are also in it, or similar (validation images in the training set)',
    },
    report: {
      type: 'string',
      requiresArg: true,
      group: 'Output',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'Also write the results to this HTML page, with pictures',
    },
    limit: {
      ...wholeNumber('--limit', 'Maximum number of samples, and of groups of duplicates, per finding', { default: 48 }),
      group: 'Output',
      isCommon: true,
    },
    overwrite: {
      type: 'boolean',
      default: false,
      group: 'Output',
      isCommon: true,
      describe: 'Measure again even if results are stored',
    },
    workers: WORKERS_FLAG,
  },
  examples: [
    ['$0 inspect shards', 'Ranked findings; the measurements become columns for --where'],
    ['$0 inspect shards --report report.html', 'The same as a page with pictures'],
    ['$0 inspect shards/train --against shards/val', 'Also which images of val are in train'],
    ['$0 preview shards --where "inspect.sharpness < 20" --output odd.png', 'Afterwards: select by measurement'],
  ],
  handler: async ({ dataset, against, limit, overwrite, report: page, workers, json }) => {
    const { inspect } = await import('@shardtool/reader');
    if (page !== undefined) await (await import('../../inspect/write-report.js')).checkReportPath(page);
    const view = json ? null : await ProgressView.open();
    const report = await inspect(dataset, {
      against,
      limit,
      overwrite,
      workers,
      ...(view !== null && { onProgress: ({ images, totalImages }) => show(view, images, totalImages) }),
    }).finally(() => view?.hide());
    if (page !== undefined)
      await (await import('../../inspect/write-report.js')).writeReport(report, page, dataset, against);
    await print(json ? JSON.stringify(report) : describe(report).join('\n'));
  },
});

function show(view: ProgressView, done: number, total: number): void {
  view.show({ stage: 'inspect', done, total, parts: [`${formatCount(done)} of ${countOf(total, 'sample')}`] });
}

function describe(report: InspectReport): string[] {
  const { samples, known, isKept, bad, findings, duplicates, nearDuplicates, leaks, normalize } = report;
  const groups: readonly (readonly [string, InspectGroups])[] = [
    ['equal bytes', duplicates],
    ['look alike', nearDuplicates],
    ...(leaks === null ? [] : [['in both datasets', leaks] as const]),
  ];
  const none = [
    ...groups.filter(([, { groups: count }]) => count === 0).map(([title]) => title),
    ...findings.filter(({ count }) => count === 0).map(({ name }) => name),
  ];
  const before = known === 0 ? '' : `, ${known === samples ? 'all' : formatCount(known)} of them measured earlier`;
  return [
    `${countOf(samples, 'sample')} inspected${before}`,
    ...(isKept
      ? []
      : [
          '  the measurements cannot be stored next to these files, so --where does not have their columns: pack them first',
        ]),
    ...(bad.count === 0 ? [] : ['', `${countOf(bad.count, 'sample')} that cannot be used`]),
    ...bad.samples.slice(0, PRINTED).map(({ key, reason }) => `  ${escapeControls(key)}: ${escapeControls(reason)}`),
    ...groups.flatMap(([title, group]) => groupLines(title, group)),
    ...findings.flatMap(findingLines),
    ...(none.length === 0 ? [] : ['', `none: ${none.join(', ')}`]),
    ...(normalize === null ? [] : ['', 'mean and std of all images, as a transform step:', `  ${stepOf(normalize)}`]),
    ...(isKept
      ? ['', 'The measurements are stored: select with --where, for example --where "inspect.sharpness < 20".']
      : []),
  ];
}

function stepOf({ mean, std }: NonNullable<InspectReport['normalize']>): string {
  return JSON.stringify({ name: 'normalize', mean, std });
}

function groupLines(title: string, { groups, acrossClasses, samples, first }: InspectGroups): string[] {
  if (groups === 0) return [];
  const across = acrossClasses === 0 ? '' : `, ${formatCount(acrossClasses)} across classes`;
  return [
    '',
    `${title}: ${countOf(samples, 'sample')} in ${countOf(groups, 'group')}${across}`,
    ...first.slice(0, PRINTED).map(({ size, samples: own, others }) => {
      const names = [...own, ...others].slice(0, 4).map(({ key }) => escapeControls(key));
      return `  ${names.join(', ')}${size > names.length ? ` and ${formatCount(size - names.length)} more` : ''}`;
    }),
    ...(groups > PRINTED ? [`  and ${countOf(groups - PRINTED, 'more group')}`] : []),
  ];
}

function findingLines({ name, help, count, samples }: InspectFinding): string[] {
  if (count === 0) return [];
  return [
    '',
    `${name}: ${countOf(count, 'sample')} (${help})`,
    ...samples.slice(0, PRINTED).map(({ key, value }) => `  ${escapeControls(key)}\t${Math.round(value * 100) / 100}`),
    ...(count > PRINTED ? [`  and ${formatCount(count - PRINTED)} more`] : []),
  ];
}
