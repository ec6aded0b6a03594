import { escapeControls } from '@shardtool/base/text';
import type { AddOverlayOptions, OverlaySummary } from '@shardtool/reader';
import { type CommandFamily, command } from '../../command.js';
import { BASE_ARGUMENT } from '../../options/arguments.js';
import { openGiven, readKeys } from '../../options/dataset-flags.js';
import { PARENT_FLAG } from '../../options/overlay-flags.js';
import { newClassLines } from '../../terminal/new-classes.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

const NAME = { type: 'string', demandOption: true, describe: 'Name of the overlay' } as const;

const overlayAddCommand = command({
  name: 'add',
  summary: 'Write an overlay: exclude samples, change classes and columns',
  details: 'It is the file DATASET/overlays/NAME.jsonl. Existing overlays are never overwritten.',
  arguments: { dataset: BASE_ARGUMENT, name: { ...NAME, describe: 'Name of the overlay to write' } },
  options: {
    'exclude-keys': {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'Exclude the samples whose keys are in this text file, one per line',
    },
    'exclude-where': {
      type: 'string',
      requiresArg: true,
      group: 'Samples',
      placeholder: 'EXPRESSION',
      isCommon: true,
      describe: 'Exclude the samples that match: "width < 64"',
    },
    labels: {
      type: 'string',
      requiresArg: true,
      group: 'Classes and labels',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'Classes and columns, as CSV or JSON Lines: key,class,... or path,class,...',
    },
    rename: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Classes and labels',
      placeholder: 'OLD=NEW',
      isCommon: true,
      describe: 'Rename a class. If the new name is that of another class, the two are merged',
    },
    classes: {
      type: 'string',
      requiresArg: true,
      group: 'Classes and labels',
      placeholder: 'FILE',
      describe: 'Text file with all classes in their new order, one per line',
    },
    parent: PARENT_FLAG,
    output: {
      type: 'string',
      requiresArg: true,
      group: 'Output',
      placeholder: 'FILE',
      describe: 'File to write. Default: DATASET/overlays/NAME.jsonl',
    },
  },
  examples: [
    ['$0 overlay add shards clean --exclude-keys bad.txt --labels fixed.csv', 'The shards do not change'],
    ['$0 overlay add shards fewer --parent clean --rename dog=animal --rename cat=animal', 'Merge two classes'],
    ['$0 bench shards --overlay fewer', 'Use it with any command or loader'],
  ],
  handler: async (given) => {
    const { addOverlay } = await import('@shardtool/reader');
    const report = await addOverlay(given.dataset, await optionsOf(given.name, given));
    if (given.json) return print(JSON.stringify(report));
    const { file, excluded, relabelled, set, classes } = report;
    await print(
      [
        `Wrote ${escapeControls(file)}: ${countOf(excluded, 'sample')} excluded, ${countOf(relabelled, 'sample')} with another ` +
          `class, ${countOf(set, 'sample')} with other columns; ${countOf(classes, 'class', 'classes')}.`,
        ...newClassLines(report),
      ].join('\n'),
    );
  },
});

const overlayLsCommand = command({
  name: 'ls',
  summary: 'List the overlays of a dataset',
  arguments: { dataset: BASE_ARGUMENT },
  options: {},
  examples: [['$0 overlay ls shards', 'Name, parent, hash and changes of each']],
  handler: async ({ dataset: location, json }) => {
    const { listOverlays } = await import('@shardtool/reader');
    const overlays = await listOverlays(location);
    // Without overlays it is not known yet whether there is a dataset.
    if (overlays.length === 0) await (await openGiven(location, {})).close();
    if (json) return print(JSON.stringify(overlays));
    await print(overlays.length === 0 ? `${escapeControls(location)} has no overlays.` : overlays.map(line).join('\n'));
  },
});

const overlayShowCommand = command({
  name: 'show',
  summary: 'Print an overlay: a header, then one JSON object per changed sample',
  arguments: { dataset: BASE_ARGUMENT, name: NAME },
  options: {},
  examples: [['$0 overlay show shards clean', 'The lines are JSON, with or without --json']],
  handler: async ({ dataset: location, name }) => {
    const [{ readOverlay }, { overlayLine }] = await Promise.all([
      import('@shardtool/reader'),
      import('@shardtool/format'),
    ]);
    const { entries, ...header } = await readOverlay(location, name);
    await print(JSON.stringify(header));
    for (const entry of entries) await print(overlayLine(entry));
  },
});

const overlayLogCommand = command({
  name: 'log',
  summary: 'List an overlay and its chain of parents',
  arguments: { dataset: BASE_ARGUMENT, name: NAME },
  options: {},
  examples: [['$0 overlay log shards fewer', 'The overlay first, then its parent, and so on']],
  handler: async ({ dataset: location, name, json }) => {
    const { overlayHistory } = await import('@shardtool/reader');
    const chain = await overlayHistory(location, name);
    await print(json ? JSON.stringify(chain) : chain.map(line).join('\n'));
  },
});

const overlayRmCommand = command({
  name: 'rm',
  summary: 'Remove an overlay; a copy stays in overlays/dropped',
  arguments: { dataset: BASE_ARGUMENT, name: NAME },
  options: {},
  examples: [['$0 overlay rm shards clean', 'Fails if another overlay has it as its parent']],
  handler: async ({ dataset: location, name, json }) => {
    const { removeOverlay } = await import('@shardtool/reader');
    const kept = await removeOverlay(location, name);
    await print(
      json ? JSON.stringify({ kept }) : `Removed ${escapeControls(name)}; a copy is in ${escapeControls(kept)}.`,
    );
  },
});

export const overlayCommand: CommandFamily = {
  name: 'overlay',
  summary: 'Change classes and columns, or exclude samples, without touching shards',
  details: 'An overlay is a small file next to the shards. Pass --overlay NAME to any command or loader to apply it.',
  commands: [overlayAddCommand, overlayLsCommand, overlayShowCommand, overlayLogCommand, overlayRmCommand],
  examples: [
    ['$0 overlay add shards clean --exclude-keys bad.txt', 'Exclude the keys in bad.txt'],
    ['$0 overlay ls shards', 'List the overlays'],
    ['$0 bench shards --overlay clean', 'Use it with any command or loader'],
  ],
};

function line({ name, parent, hash, excluded, relabelled, set, kept, splits, note }: OverlaySummary): string {
  const changes = [
    ...(kept === null ? [] : [`a subset of ${countOf(kept, 'sample')}`]),
    ...(excluded > 0 ? [`${countOf(excluded, 'sample')} excluded`] : []),
    ...(relabelled > 0 ? [`${countOf(relabelled, 'sample')} of another class`] : []),
    ...(set > 0 ? [`columns set for ${countOf(set, 'sample')}`] : []),
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
    labels: labels === undefined ? undefined : await (await import('@shardtool/writer')).openPackedLabels(labels),
    rename: rename === undefined ? undefined : new Map(rename.map(pairOf)),
    classes: classes === undefined ? undefined : await readKeys('--classes', classes),
  };
}

function pairOf(given: string): [string, string] {
  const at = given.indexOf('=');
  if (at > 0 && at < given.length - 1) return [given.slice(0, at), given.slice(at + 1)];
  throw new UsageError(`--rename takes OLD=NEW, not "${given}".`);
}
