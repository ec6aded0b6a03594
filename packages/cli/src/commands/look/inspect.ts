import { escapeControls } from '@shardtool/base/text';
import type { InspectFinding, InspectGroups, InspectReport } from '@shardtool/reader';
import { command } from '../../command.js';
import { wholeNumber } from '../../options/flags.js';
import { print } from '../../terminal/outcome.js';
import { ProgressView } from '../../terminal/progress-view.js';
import { countOf, formatCount } from '../../terminal/size.js';

/** So many samples of a finding are printed; the report has more. */
const PRINTED = 5;

export const inspectCommand = command({
  name: 'inspect',
  positionals: '<dataset>',
  describe: 'Find copies, leaks, and dark, bright, blurry and empty images; mean and std for normalize',
  builder: (yargs) =>
    yargs
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards, or one tar' })
      .option('against', {
        type: 'string',
        requiresArg: true,
        describe: 'A second dataset: images that both have, or nearly, are listed (training in validation)',
      })
      .option(
        'limit',
        wholeNumber('--limit', 'How many samples of each finding, and groups of copies, are named', { default: 48 }),
      )
      .option('overwrite', {
        type: 'boolean',
        default: false,
        describe: 'Measure anew what lies beside the shards already',
      })
      .option('report', {
        type: 'string',
        requiresArg: true,
        describe: 'Writes what is found to this file, too: one page of HTML with the pictures',
      })
      .option('workers', wholeNumber('--workers', 'Threads; by default one a core', { to: 1024 }))
      .option('json', { type: 'boolean', default: false, describe: 'The report as one JSON object' })
      .example('$0 inspect shards', 'What is odd, ranked, and kept as columns for --where')
      .example('$0 inspect shards --report report.html', 'The same as a page with pictures')
      .example('$0 inspect shards/train --against shards/val', 'And which images of val are in train, too')
      .example(
        '$0 preview shards --where "inspect.sharpness < 20" --output odd.png',
        'Afterwards: choose by what was measured',
      ),
  handler: async ({ dataset, against, limit, overwrite, report: page, workers, json }) => {
    const { inspect } = await import('@shardtool/reader');
    if (page !== undefined) await (await import('../../inspect/write-report.js')).checkReportPath(page);
    const view = json ? null : await ProgressView.open();
    const report = await inspect(dataset, {
      ...{ against, limit, overwrite, workers },
      ...(view !== null && { onProgress: (done, total) => show(view, done, total) }),
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
  const before = known === 0 ? '' : `, ${known === samples ? 'all' : formatCount(known)} of them measured before`;
  return [
    `${countOf(samples, 'sample')} inspected${before}`,
    ...(isKept ? [] : ['  nothing can lie beside these files, so --where does not know the columns: pack them first']),
    ...(bad.count === 0 ? [] : ['', `${countOf(bad.count, 'sample')} that cannot be used`]),
    ...bad.samples.slice(0, PRINTED).map(({ key, reason }) => `  ${escapeControls(key)}: ${escapeControls(reason)}`),
    ...groupLines('equal bytes', duplicates),
    ...groupLines('look alike', nearDuplicates),
    ...(leaks === null ? [] : groupLines('in both datasets', leaks)),
    ...findings.flatMap(findingLines),
    ...(normalize === null ? [] : ['', 'mean and std of all images, as a step:', `  ${stepOf(normalize)}`]),
  ];
}

function stepOf({ mean, std }: NonNullable<InspectReport['normalize']>): string {
  return JSON.stringify({ name: 'normalize', mean, std });
}

function groupLines(title: string, { groups, acrossClasses, samples, first }: InspectGroups): string[] {
  if (groups === 0) return ['', `${title}: none`];
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
  if (count === 0) return ['', `${name}: none`];
  return [
    '',
    `${name}: ${countOf(count, 'sample')} (${help})`,
    ...samples.slice(0, PRINTED).map(({ key, value }) => `  ${escapeControls(key)}\t${Math.round(value * 100) / 100}`),
    ...(count > PRINTED ? [`  and ${formatCount(count - PRINTED)} more`] : []),
  ];
}
