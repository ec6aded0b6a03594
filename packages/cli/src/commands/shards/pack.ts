import { escapeControls } from '@shardtool/base/text';
import type { PackOptions, PackProgress, PackReport, PairedFolder, PartOption } from '@shardtool/writer';
import { OUTPUT_OPTIONS, PACK_OPTIONS } from '@shardtool/writer/option-table';
import { command } from '../../command.js';
import { OUTPUT_ARGUMENT } from '../../options/arguments.js';
import { flagsOf } from '../../options/option-flags.js';
import { OUTPUT_FLAGS } from '../../options/output-flags.js';
import { adviceOnClasses, adviceOnPatterns, tablesBelow } from '../../pack/source-advice.js';
import { stoppable } from '../../terminal/interrupt.js';
import { log } from '../../terminal/log.js';
import { foundFault, print, UsageError } from '../../terminal/outcome.js';
import { ProgressView } from '../../terminal/progress-view.js';
import {
  annotationsLine,
  changesLine,
  classlessLine,
  countLine,
  cropLines,
  fieldsLine,
  folderLines,
  keptLine,
  labelsWarning,
  metaLine,
  skippedLine,
} from '../../terminal/report-lines.js';
import { countOf, formatSize } from '../../terminal/size.js';
import { timeLine } from '../../terminal/time-line.js';
import { WriteRate } from '../../terminal/write-rate.js';

export const packCommand = command({
  name: 'pack',
  summary: 'Pack a folder of images into shards',
  details:
    'An interrupted pack resumes if you repeat the command. Options you omit have the defaults below; with --append, the values of the first pack.',
  arguments: {
    source: {
      type: 'string',
      demandOption: true,
      describe: 'Folder with one folder per class, or a URL such as s3://bucket/photos',
    },
    output: OUTPUT_ARGUMENT,
  },
  options: {
    ...OUTPUT_FLAGS,
    ...flagsOf(PACK_OPTIONS),
    split: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Output',
      placeholder: 'NAME=SHARE',
      describe: 'Split the dataset afterwards by the hash of its keys: val=10% (see "split")',
      coerce: (given: readonly string[]) => new Map(given.map(shareOf)),
    },
  },
  examples: [
    ['$0 pack photos shards', 'photos/cat/1.jpg becomes the sample cat/1 of class cat'],
    ['$0 pack photos shards --resize 256 --quality 90', 'Shrink the images'],
    ['$0 pack photos shards --labels labels.csv', 'Classes and columns from a table'],
    ['$0 pack photos shards --check decode --on-bad quarantine', 'Decode every image, and skip damaged ones'],
    ['$0 pack s3://bucket/photos shards', 'From a bucket, many objects at a time'],
    ['$0 pack photos s3://bucket/shards', 'To a bucket; not all shards need room on the local disk'],
    ["$0 pack photos shards --exclude '**/raw/**' --exclude '*.tif'", 'Skip some of the files'],
    ['$0 pack imagenet shards --splits', 'imagenet/train and imagenet/val become shards/train and shards/val'],
    ['$0 pack photos shards --index crops', 'With crop indexes, which make random crops faster'],
    ['$0 pack photos shards --append', 'Add images that are new since the last pack'],
    ['$0 pack photos shards --append --dry-run', 'How many images are new, changed and missing'],
    ['$0 pack photos shards --part 3/16', 'Pack the third of 16 parts, on one of 16 machines'],
    [
      '$0 pack photos shards --part auto',
      'Pack the part of this process in a job of Slurm, Kubernetes, AWS Batch, MPI and others',
    ],
  ],
  handler: async (given) => {
    const { autoPart, changesBytes, pack, parsePart, partOfEnvironment } = await import('@shardtool/writer');
    const { source, output, json, quiet, split, dryRun = false } = given;
    const view = json || quiet ? null : await ProgressView.open();
    const options = optionsOf(given, parsePart);
    const isImplied = options.part === undefined && !dryRun;
    const found = options.part === 'auto' ? autoPart(process.env) : isImplied ? partOfEnvironment(process.env) : null;
    if (found !== null) {
      options.part = found.part;
      if (!quiet)
        log('info', `Part ${partText(found.part)}, from ${found.variables}; --part 1/1 packs everything.`, {
          event: 'part',
        });
    }
    const rate = new WriteRate();
    const onProgress = (progress: PackProgress) => view?.show(rate.describe(progress));
    const remedy = dryRun ? '' : ` ${output} is not complete: repeat the command to resume.`;
    if (split !== undefined && options.splits) {
      throw new UsageError(
        '--split divides one dataset by keys, but --splits packs the folders train, val and test: use only one of them.',
      );
    }
    if (split !== undefined && (dryRun || options.part !== undefined)) {
      throw new UsageError('--split needs a complete pack: run "shardtool split" afterwards.');
    }
    const { isRemote } = await import('@shardtool/storage');
    if (split !== undefined && isRemote(output))
      throw new UsageError('--split needs a local output folder: run "shardtool split" on the dataset afterwards.');
    const startedAt = performance.now();
    let report: PackReport;
    try {
      report = await stoppable(remedy, (signal) => pack(source, output, { ...options, signal, onProgress }));
    } finally {
      view?.hide();
    }
    // Unless bad files are skipped, the pack itself would stop, with the same exit code.
    if (dryRun && report.quarantined > 0 && options.onBad !== 'quarantine') foundFault();
    if (json) await print(JSON.stringify(report));
    else if (!quiet) {
      const parts = report.splits ?? [{ name: '', report }];
      for (const { name, report: part } of parts) {
        const [from, to] = [source, output].map((place) => (name === '' ? place : `${place}/${name}`));
        await print(describe(part, from!, to!, { ...options, hasOtherBytes: changesBytes(options) }));
      }
      const seconds = (performance.now() - startedAt) / 1000;
      if (!dryRun && report.samples > 0 && !report.wasCommitted) await print(lastLine(report, seconds, output));
      const sidecars = report.splitSidecars ?? [];
      if (sidecars.length > 0)
        await print(`Not packed, next to them: ${sidecars.map((name) => escapeControls(name)).join(', ')}.`);
    }
    if (split === undefined) return;
    const { splitDataset } = await import('@shardtool/reader');
    const made = await splitDataset(output, { shares: split });
    if (json || quiet) return;
    await print(
      `Split by key: ${made.splits.map((part) => `${part.name} ${countOf(part.samples, 'sample')}`).join(', ')}.`,
    );
  },
});

/** The duration and rate of the pack, and the next command. */
function lastLine(
  { samples, sourceBytes, keptShards, pendingShards, splits }: PackReport,
  seconds: number,
  output: string,
): string {
  const first = splits?.[0] === undefined ? output : `${output}/${splits[0].name}`;
  const next = pendingShards > 0 ? undefined : `shardtool bench ${first}`;
  return timeLine({ samples, bytes: sourceBytes, seconds, isResumed: keptShards > 0, next });
}

/** `val=0.1`. */
function shareOf(given: string): [string, number] {
  const match = /^([A-Za-z0-9_-]+)=(0?\.\d+|\d+(?:\.\d+)?%)$/.exec(given);
  if (match === null) throw new UsageError(`--split takes NAME=SHARE such as val=0.1 or val=10%, not "${given}".`);
  const [, name, text] = match as unknown as [string, string, string];
  return [name, text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text)];
}

/** The options by name, without what yargs adds. */
function optionsOf({ pair, part, ...given }: Flags, parsePart: (text: string) => PartOption): PackOptions {
  const names = Object.keys({ ...OUTPUT_OPTIONS, ...PACK_OPTIONS });
  const options = Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name)));
  return {
    ...options,
    ...(pair !== undefined && { pair: pair.map(pairedFolder) }),
    ...(part !== undefined && { part: parsePart(part) }),
  };
}

type Flags = Omit<PackOptions, 'pair' | 'part'> & {
  readonly pair?: readonly string[] | undefined;
  readonly part?: string | undefined;
};

/** Reads `masks=seg.png`. */
function pairedFolder(text: string): PairedFolder {
  const [folder, field] = text.split('=');
  if (PACK_OPTIONS.pair.pattern.test(text)) return { folder: folder!, field: field! };
  throw new UsageError(`--pair ${PACK_OPTIONS.pair.must}, and not "${text}".`);
}

/** `3/16`, as `--part` spells it. */
function partText(part: PartOption): string {
  return part === 'auto' ? part : `${part.index + 1}/${part.of}`;
}

function describe(
  report: PackReport,
  source: string,
  output: string,
  {
    dryRun,
    check,
    onBad,
    exclude = [],
    append,
    dedupe,
    labels,
    coco,
    primary,
    yolo,
    part,
    hasOtherBytes,
  }: PackOptions & { readonly hasOtherBytes: boolean },
): string {
  const {
    keptShards,
    pendingShards,
    renamed,
    orientationBaked,
    warnings,
    metadataKept,
    crops,
    duplicates,
    classConflicts,
    skippedFolders,
    hiddenFolders,
    quarantined,
    partialFields,
  } = report;
  const hasLists = dryRun !== true || check !== undefined;
  const later = append ? 'the append lists' : '--dry-run --check header lists';
  const listsOf = (list: string) => (hasLists ? `${list} lists` : later);
  const isNothing = report.samples + quarantined + duplicates === 0;
  const table = labels ?? report.metadata;
  const overlay = table === null || table === undefined ? null : overlayCommand(output, table);
  if (report.wasCommitted || (append && isNothing)) {
    return [
      `${escapeControls(output)} already has all of ${escapeControls(source)}.`,
      ...changesLine(report, overlay, dryRun === true),
    ].join('\n');
  }
  const verb = append ? (dryRun ? 'Would add' : 'Added') : dryRun ? 'Would pack' : 'Packed';
  const into = append ? 'in' : 'into';
  return [
    ...labelsWarning(report, labels ?? coco ?? report.metadata ?? ''),
    `${verb} ${countOf(report.files, 'file')} (${formatSize(report.sourceBytes)}), ` +
      `${countOf(report.samples, 'sample')} of ${countOf(report.classes.length, 'class', 'classes')}, ${into} ` +
      `${countOf(report.shards, 'shard')} ${append ? 'to' : 'in'} ${escapeControls(output)}${dryRun ? '' : ` (${formatSize(report.bytes)})`}.`,
    ...adviceOnClasses(
      report.classes.map((name) => escapeControls(name)),
      report.samples,
      escapeControls(source),
      labels !== undefined ? 'labels' : (coco ?? yolo ?? primary ?? report.metadata) ? 'other' : null,
      tablesBelow(source, report.classes).map((table) => escapeControls(table)),
    ),
    ...(report.classes.length === 0 ? [] : adviceOnPatterns(exclude, source).map((line) => escapeControls(line))),
    ...(report.metadata === null
      ? []
      : [`  ${escapeControls(report.metadata)} was used as labels, because it has a column file_name`]),
    ...countLine(keptShards, 'shard was already finished', 'shards were already finished'),
    ...(part === undefined ? [] : [`  part ${partText(part)}: ${partLine(pendingShards)}`]),
    ...countLine(
      renamed,
      'image has another format than its extension; its field has the name of the format',
      'images have another format than their extension; their fields have the name of the format',
    ),
    ...countLine(
      orientationBaked,
      'image was rotated by its EXIF orientation',
      'images were rotated by their EXIF orientation',
    ),
    ...countLine(warnings, 'image was decoded with warnings', 'images were decoded with warnings'),
    ...countLine(
      metadataKept,
      'image keeps its metadata, since it is a TIFF, AVIF, BMP or PPM, or is damaged; --image-format encodes it again',
      'images keep their metadata, since they are TIFF, AVIF, BMP or PPM, or are damaged; --image-format encodes them again',
    ),
    ...countLine(
      report.narrowed,
      'image has more than 8 bits per channel, of which loaders return the upper 8; scale it to 8 bits first, or store its values as .npy',
      'images have more than 8 bits per channel, of which loaders return the upper 8; scale them to 8 bits first, or store their values as .npy',
    ),
    ...countLine(
      report.refused,
      'image has floating-point, signed or long values, which are not pixels; loaders treat it as a bad sample: store its values as .npy',
      'images have floating-point, signed or long values, which are not pixels; loaders treat them as bad samples: store their values as .npy',
    ),
    ...cropLines(crops),
    ...countLine(
      duplicates,
      'image has the same bytes as another and was skipped (duplicates.jsonl lists it)',
      'images have the same bytes as others and were skipped (duplicates.jsonl lists them)',
    ),
    ...countLine(
      classConflicts,
      'of them has another class than the image that was packed',
      'of them have other classes than the images that were packed',
    ),
    ...(append && dedupe && hasOtherBytes
      ? ['  new images were only compared with each other, because packing changes their bytes']
      : []),
    ...keptLine(report),
    ...changesLine(report, overlay, dryRun === true),
    ...skippedLine(report, listsOf),
    ...annotationsLine(report, listsOf),
    ...countLine(
      skippedFolders.length,
      `folder was skipped, because another path leads to it too: ${escapeControls(skippedFolders[0] ?? '')}`,
      `folders were skipped, because other paths lead to them too; the first: ${escapeControls(skippedFolders[0] ?? '')}`,
    ),
    ...countLine(
      hiddenFolders.length,
      `folder was skipped, because its name begins with a dot (ImageFolder would use its images): ${escapeControls(hiddenFolders[0] ?? '')}`,
      `folders were skipped, because their names begin with a dot (ImageFolder would use their images); the first: ${escapeControls(hiddenFolders[0] ?? '')}`,
    ),
    ...folderLines(report),
    ...metaLine(report.metaSamples),
    ...countLine(
      report.missingFiles,
      'row of the labels has no file in the source (skipped.jsonl lists it)',
      'rows of the labels have no file in the source (skipped.jsonl lists them)',
    ),
    ...badLine(quarantined, dryRun === true && onBad !== 'quarantine'),
    // They are counted in the whole dataset.
    ...(append || part !== undefined
      ? []
      : [...classlessLine(partialFields, report.samples), ...fieldsLine(partialFields, report.samples)]),
  ].join('\n');
}

/** The command that applies the classes and columns of a table to packed samples. */
function overlayCommand(output: string, table: string): string {
  return `"shardtool overlay add ${escapeControls(output)} relabelled --labels ${escapeControls(table)}"`;
}

/** `isEnd`: the pack itself would stop at the first of them. */
function badLine(bad: number, isEnd: boolean): string[] {
  const list = 'quarantine.jsonl says why';
  if (isEnd) {
    return countLine(
      bad,
      `file is bad (${list}), and the pack would stop there: --on-bad quarantine skips it`,
      `files are bad (${list}), and the pack would stop at the first: --on-bad quarantine skips them`,
    );
  }
  return countLine(bad, `file is bad and was skipped: ${list}`, `files are bad and were skipped: ${list}`);
}

function partLine(pendingShards: number): string {
  if (pendingShards === 0) return 'all parts are done, and the dataset is committed';
  return `${countOf(pendingShards, 'shard')} of other parts ${pendingShards === 1 ? 'is' : 'are'} not finished yet`;
}
