import path from 'node:path';
import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { print, UsageError } from '../../terminal/outcome.js';
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
        describe: 'The file to write, as both.json',
      })
      .option('class-lists', {
        choices: ['name', 'offset', 'apart'] as const,
        default: 'name' as const,
        requiresArg: true,
        describe: 'Classes of one name are one (name), follow each other (offset), or keep their numbers (apart)',
      })
      .option('copy', COPY_FLAG)
      .example('$0 merge photos paintings --output both.json', 'Nothing is copied; weights may be written into it')
      .example('$0 bench both.json', 'In place of a folder')
      .example('$0 merge photos paintings --output both.json --copy both', 'And as shards of its own'),
  handler: async ({ datasets, output, classLists, copy }) => {
    if (!output.endsWith('.json'))
      throw new UsageError(`--output takes a file that ends with .json, and not "${output}".`);
    const folder = path.dirname(path.resolve(output));
    const placed = (place: string) =>
      /^[a-z0-9+.-]+:\/\//i.test(place) ? place : path.relative(folder, path.resolve(place));
    const parts = datasets.map((dataset) => ({ dataset: placed(dataset) }));
    const listed = parts.map((part) => `    ${JSON.stringify(part)}`).join(',\n');
    const joined = classLists === 'name' ? '' : `,\n  "classLists": "${classLists}"`;
    const text = `{\n  "mixture": [\n${listed}\n  ]${joined}\n}\n`;
    const [{ findDuplicateKeys, openMixture }, { FileExistsError, flushFolder, writeAtomically }] = await Promise.all([
      import('@shardtool/reader'),
      import('@shardtool/base'),
    ]);
    // What cannot be opened is no mixture: nothing is written then.
    const opened = datasets.map((place) => ({ dataset: place }));
    await using dataset = await openMixture(opened, { classLists });
    const { size, classes } = dataset;
    const repeated = await findDuplicateKeys(dataset);
    await writeAtomically(output, text, { ifAbsent: true }).catch((error) => {
      if (!(error instanceof FileExistsError)) throw error;
      throw new UsageError(`${output} cannot be written: it is there already, and stays as it is.`);
    });
    await flushFolder(folder);
    const copied = copy === undefined ? [] : [await copyView(output, {}, copy)];
    const [first] = repeated.examples;
    const counts = `${countOf(size, 'sample')} of ${countOf(datasets.length, 'dataset')}, ${countOf(classes.length, 'class', 'classes')}`;
    const shared =
      first === undefined
        ? []
        : [
            `  ${countOf(repeated.count, 'sample')} with a key that came before, as ${escapeControls(first)}: cat, and whoever asks by key, gets the first of each`,
          ];
    await print([`Wrote ${escapeControls(output)}: ${counts}.`, ...shared, ...copied].join('\n'));
  },
});
