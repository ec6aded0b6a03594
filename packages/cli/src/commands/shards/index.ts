import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { OUTPUT_FLAGS, QUIET_FLAG } from '../../options/output-flags.js';
import { print } from '../../terminal/outcome.js';
import { cropLines } from '../../terminal/report-lines.js';
import { countOf } from '../../terminal/size.js';

export const indexCommand = command({
  name: 'index',
  summary: 'Index WebDataset tars of other software, so that they open immediately',
  details: 'Writes NAME.parquet next to each tar. The tars do not change.',
  arguments: {
    tars: { type: 'string', array: true, demandOption: true, describe: 'Tar files, or folders with tar files' },
  },
  options: {
    overwrite: {
      type: 'boolean',
      default: false,
      group: 'Output',
      describe: 'Also rebuild indexes that are up to date',
    },
    index: {
      ...OUTPUT_FLAGS.index,
      describe: `${OUTPUT_FLAGS.index.describe}. These are always written again`,
    },
    columns: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Classes and labels',
      placeholder: 'PATHS',
      coerce: (given: readonly string[]) => given.flatMap((text) => text.split(',')),
      describe: 'Turn values of JSON fields into columns for --where: json.width, or json.width,json.size.0',
    },
    labels: {
      type: 'string',
      array: true,
      requiresArg: true,
      group: 'Classes and labels',
      placeholder: 'FILE',
      describe:
        'Add columns by key from a file (Parquet of img2dataset, CSV or JSON Lines), or from all Parquet files of a folder',
    },
    quiet: QUIET_FLAG,
  },
  examples: [
    ['$0 index imagenet-train-*.tar', 'Writes NAME.parquet next to each tar'],
    ['$0 index imagenet/', 'The same for all tars of a folder'],
    ['$0 index imagenet/ --index wids,dali', 'Also write what other loaders need: shardindex.json, NAME.idx'],
    ['$0 index imagenet/ --index crops', 'Also write NAME.crops, which makes random crops faster'],
    ['$0 index laion/ --labels laion/', "Columns such as caption from img2dataset's 00000.parquet"],
    ['$0 index shards/ --columns json.width', 'A column for --where "json.width > 100"'],
  ],
  handler: async ({ tars, overwrite, index, columns, labels, json, quiet }) => {
    const { indexShards } = await import('@shardtool/writer');
    const report = await indexShards(tars, {
      overwrite,
      columns: columns ?? [],
      labels: labels ?? [],
      index: index ?? [],
    });
    if (json) return print(JSON.stringify(report));
    if (quiet) return;
    const { shards, samples, kept, skippedEntries, skippedLinks, crops } = report;
    await print(`Indexed ${countOf(samples, 'sample')} in ${countOf(shards, 'shard')}.`);
    if (kept > 0) await print(`  ${countOf(kept, 'index', 'indexes')} ${kept === 1 ? 'is' : 'are'} up to date`);
    if (skippedLinks > 0) {
      await print(
        `  ${countOf(skippedLinks, 'link in them belongs', 'links in them belong')} to no sample: "shardtool convert --links follow" copies the files that links point to`,
      );
    }
    if (skippedEntries > 0)
      await print(`  ${countOf(skippedEntries, 'file in them belongs', 'files in them belong')} to no sample`);
    for (const line of cropLines(crops)) await print(line);
    const found = report.columns;
    if (found === null) return;
    await print(`  columns: ${found.columns.map(({ name, type }) => `${escapeControls(name)} (${type})`).join(', ')}`);
    if (found.unreadable > 0)
      await print(`  ${countOf(found.unreadable, 'field')} of JSON cannot be read, so the columns have no value there`);
    if (found.unlabelled > 0)
      await print(
        `  ${countOf(found.unlabelled, 'sample is', 'samples are')} in no labels file, so the columns have no value there`,
      );
  },
});
