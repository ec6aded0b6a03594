import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { OUTPUT_FLAGS, QUIET_FLAG } from '../../options/output-flags.js';
import { print } from '../../terminal/outcome.js';
import { cropLines } from '../../terminal/report-lines.js';
import { countOf } from '../../terminal/size.js';

export const indexCommand = command({
  name: 'index',
  positionals: '<tars..>',
  describe: 'Index WebDataset tars of other software, so that they open at once',
  builder: (yargs) =>
    yargs
      .positional('tars', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'Tar files, or folders of them',
      })
      .option('overwrite', {
        type: 'boolean',
        default: false,
        describe: 'Also make indexes anew that are newer than their tars; those of --index always are',
      })
      .option('index', OUTPUT_FLAGS.index)
      .option('columns', {
        type: 'string',
        array: true,
        requiresArg: true,
        coerce: (given: readonly string[]) => given.flatMap((text) => text.split(',')),
        describe: 'Also make columns of values inside JSON fields, for --where: json.width, or json.width,json.size.0',
      })
      .option('labels', {
        type: 'string',
        array: true,
        requiresArg: true,
        describe:
          'Also take columns by key from this file (Parquet as img2dataset writes it, CSV, JSON Lines), or all Parquet of a folder',
      })
      .option('json', { type: 'boolean', default: false, describe: 'The report as one JSON object' })
      .option('quiet', QUIET_FLAG)
      .example('$0 index imagenet-train-*.tar', 'NAME.parquet beside each tar')
      .example('$0 index imagenet/', 'The same for all tars of a folder')
      .example('$0 index imagenet/ --index wids,dali', 'And what other loaders want: shardindex.json, NAME.idx')
      .example('$0 index laion/ --labels laion/', "Columns (caption, similarity ...) of img2dataset's 00000.parquet")
      .example('$0 index shards/ --columns json.width', 'A column for --where "json.width > 100"')
      .example('$0 index imagenet/ --index crops', 'And what makes random crops faster: NAME.crops'),
  handler: async ({ tars, overwrite, index, columns, labels, json, quiet }) => {
    const { indexShards } = await import('@shardtool/writer');
    const report = await indexShards(tars, {
      ...{ overwrite, columns: columns ?? [], labels: labels ?? [] },
      index: index ?? [],
    });
    if (json) return print(JSON.stringify(report));
    if (quiet) return;
    const { shards, samples, kept, skippedEntries, skippedLinks, crops } = report;
    await print(`Indexed ${countOf(samples, 'sample')} in ${countOf(shards, 'shard')}.`);
    if (kept > 0)
      await print(`  ${countOf(kept, 'index', 'indexes')} stayed as ${kept === 1 ? 'it was' : 'they were'}`);
    if (skippedLinks > 0) {
      await print(
        `  ${countOf(skippedLinks, 'link')} in them belong to no sample: "shardtool convert --links follow" takes their files`,
      );
    }
    if (skippedEntries > 0) await print(`  ${countOf(skippedEntries, 'file')} in them belong to no sample`);
    for (const line of cropLines(crops)) await print(line);
    const found = report.columns;
    if (found === null) return;
    await print(`  columns: ${found.columns.map(({ name, type }) => `${escapeControls(name)} (${type})`).join(', ')}`);
    if (found.unreadable > 0)
      await print(`  ${countOf(found.unreadable, 'field')} of JSON cannot be read: no value there`);
    if (found.unlabelled > 0)
      await print(`  ${countOf(found.unlabelled, 'sample')} stand in no labels file: no value there`);
  },
});
