import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { command } from '../../command.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { UsageError, write } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const mergeCommand = command({
  name: 'merge',
  positionals: '<datasets..>',
  describe: 'Make one dataset of several: a file that every command takes in place of a folder',
  builder: (yargs) =>
    yargs
      .positional('datasets', { type: 'string', array: true, demandOption: true, describe: 'Folders of shards' })
      .option('output', {
        type: 'string',
        requiresArg: true,
        demandOption: true,
        describe: 'The file to write, as both.json; its classes are joined by name',
      })
      .option('copy', COPY_FLAG)
      .example('$0 merge photos paintings --output both.json', 'Nothing is copied; weights may be written into it')
      .example('$0 bench both.json', 'In place of a folder')
      .example('$0 merge photos paintings --output both.json --copy both', 'And as shards of its own'),
  handler: async ({ datasets, output, copy }) => {
    if (!output.endsWith('.json'))
      throw new UsageError(`--output takes a file that ends with .json, and not "${output}".`);
    const folder = path.dirname(path.resolve(output));
    const placed = (place: string) =>
      /^[a-z0-9+.-]+:\/\//i.test(place) ? place : path.relative(folder, path.resolve(place));
    const parts = datasets.map((dataset) => ({ dataset: placed(dataset) }));
    const text = `{\n  "mixture": [\n${parts.map((part) => `    ${JSON.stringify(part)}`).join(',\n')}\n  ]\n}\n`;
    await writeFile(output, text, { flag: 'wx' }).catch((cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EEXIST' ? 'it is there already, and stays as it is' : cause.message;
      throw new UsageError(`${output} cannot be written: ${why}.`);
    });
    const { openDataset } = await import('@shardtool/reader');
    const dataset = await openDataset(output);
    await dataset.close();
    const { size, classes } = dataset;
    const copied = copy === undefined ? '' : await copyView(output, {}, copy);
    await write(
      `Wrote ${output}: ${countOf(size, 'sample')} of ${countOf(datasets.length, 'dataset')}, ` +
        `${countOf(classes.length, 'class', 'classes')}.\n${copied}`,
    );
  },
});
