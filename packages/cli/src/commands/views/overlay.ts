import { escapeControls } from '@shardtool/base/text';
import type { AddOverlayOptions, OverlaySummary } from '@shardtool/reader';
import { command } from '../../command.js';
import { openGiven, readKeys } from '../../options/dataset-flags.js';
import { newClassLines } from '../../terminal/new-classes.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

const ACTIONS = ['add', 'ls', 'show', 'log', 'rm'] as const;

export const overlayCommand = command({
  name: 'overlay',
  positionals: '<action> <dataset> [name]',
  describe: 'Other classes and labels, and samples left out, as a small file beside the shards',
  builder: (yargs) =>
    yargs
      .positional('action', {
        choices: ACTIONS,
        demandOption: true,
        describe: 'add: make one; ls: all of a dataset; show: its lines; log: what it lies on; rm: take it away',
      })
      .positional('dataset', { type: 'string', demandOption: true, describe: 'Folder of shards' })
      .positional('name', { type: 'string', describe: 'Name of the overlay' })
      .option('exclude-keys', { type: 'string', requiresArg: true, describe: 'add: leave out the keys in this file' })
      .option('exclude-where', {
        type: 'string',
        requiresArg: true,
        describe: 'add: leave out the samples for which this holds: "width < 64"',
      })
      .option('labels', {
        type: 'string',
        requiresArg: true,
        describe: 'add: classes and columns, CSV or JSON Lines: key,class,... or path,class,...',
      })
      .option('rename', {
        type: 'string',
        array: true,
        requiresArg: true,
        describe: 'add: OLD=NEW, a new name for a class; that of another class merges the two',
      })
      .option('classes', {
        type: 'string',
        requiresArg: true,
        describe: 'add: a file with all classes in their new order, one a line',
      })
      .option('parent', { type: 'string', requiresArg: true, describe: 'add: the overlay that it lies on' })
      .option('output', {
        type: 'string',
        requiresArg: true,
        describe: 'add: another file than DATASET/overlays/NAME.jsonl',
      })
      .option('json', { type: 'boolean', default: false, describe: 'JSON' })
      .example('$0 overlay add shards clean --exclude-keys bad.txt --labels fixed.csv', 'No shard changes')
      .example(
        '$0 overlay add shards fewer --parent clean --rename dog=animal --rename cat=animal',
        'Two classes as one',
      )
      .example('$0 bench shards --overlay fewer', 'Every command and the loader take it'),
  handler: async (given) => {
    const { action, dataset: location, name, json } = given;
    if (action === 'ls') return list(location, json);
    if (name === undefined) throw new UsageError(`overlay ${action} takes the name of an overlay behind the dataset.`);
    const { addOverlay, removeOverlay, overlayHistory, readOverlay } = await import('@shardtool/reader');
    if (action === 'add') {
      const report = await addOverlay(location, await optionsOf(name, given));
      if (json) return print(JSON.stringify(report));
      return print(
        [
          `Made ${escapeControls(report.file)}: ${countOf(report.excluded, 'sample')} left out, ${countOf(report.relabelled, 'sample')} of ` +
            `another class, columns set of ${countOf(report.set, 'sample')}; ${countOf(report.classes, 'class', 'classes')}.`,
          ...newClassLines(report),
        ].join('\n'),
      );
    }
    if (action === 'rm') {
      const kept = await removeOverlay(location, name);
      return print(json ? JSON.stringify({ kept }) : `Dropped; ${escapeControls(kept)} has it still.`);
    }
    if (action === 'log') {
      const chain = await overlayHistory(location, name);
      return print(json ? JSON.stringify(chain) : chain.map(line).join('\n'));
    }
    const { overlayLine } = await import('@shardtool/format');
    const { entries, ...header } = await readOverlay(location, name);
    await print(JSON.stringify(header));
    for (const entry of entries) await print(overlayLine(entry));
  },
});

async function list(location: string, json: boolean): Promise<void> {
  const { listOverlays } = await import('@shardtool/reader');
  const overlays = await listOverlays(location);
  // Of a place without overlays it is not known yet whether there is a dataset.
  if (overlays.length === 0) await (await openGiven(location, {})).close();
  if (json) return print(JSON.stringify(overlays));
  await print(overlays.length === 0 ? `${escapeControls(location)} has no overlays.` : overlays.map(line).join('\n'));
}

function line({ name, parent, hash, excluded, relabelled, set, kept, splits, note }: OverlaySummary): string {
  const changes = [
    ...(kept === null ? [] : [`a subset of ${countOf(kept, 'sample')}`]),
    ...(excluded > 0 ? [`${countOf(excluded, 'sample')} left out`] : []),
    ...(relabelled > 0 ? [`${countOf(relabelled, 'sample')} of another class`] : []),
    ...(set > 0 ? [`columns set of ${countOf(set, 'sample')}`] : []),
    ...splits.map((split) => `${split.name} ${countOf(split.samples, 'sample')}`),
  ];
  const on = parent === null ? '' : ` on ${parent}`;
  return `${[`${name}${on}`, hash.slice(0, 16), changes.join(', ') || 'classes', note]
    .map((value) => escapeControls(value))
    .join('\t')}`;
}

interface Given {
  readonly parent?: string | undefined;
  readonly output?: string | undefined;
  readonly excludeKeys?: string | undefined;
  readonly excludeWhere?: string | undefined;
  readonly labels?: string | undefined;
  readonly rename?: readonly string[] | undefined;
  readonly classes?: string | undefined;
}

async function optionsOf(name: string, given: Given): Promise<AddOverlayOptions> {
  const { parent, output, excludeKeys, excludeWhere, labels, rename, classes } = given;
  const asked = {
    'exclude-keys': excludeKeys,
    'exclude-where': excludeWhere,
    labels,
    rename: rename?.join(' '),
    classes,
  };
  return {
    name,
    parent,
    file: output,
    note: Object.entries(asked)
      .flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag} ${value}`]))
      .join(' '),
    excludeKeys: excludeKeys === undefined ? undefined : await readKeys('--exclude-keys', excludeKeys),
    excludeWhere,
    labels: labels === undefined ? undefined : await (await import('@shardtool/writer')).readPackedLabels(labels),
    rename: rename === undefined ? undefined : new Map(rename.map(pairOf)),
    classes: classes === undefined ? undefined : await readKeys('--classes', classes),
  };
}

function pairOf(given: string): [string, string] {
  const at = given.indexOf('=');
  if (at > 0 && at < given.length - 1) return [given.slice(0, at), given.slice(at + 1)];
  throw new UsageError(`--rename takes OLD=NEW, and not "${given}".`);
}
