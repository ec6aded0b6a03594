import path from 'node:path';
import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { COPY_FLAG, copyView } from '../../options/output-flags.js';
import { print, UsageError } from '../../terminal/outcome.js';
import { countOf } from '../../terminal/size.js';

export const mergeCommand = command({
  name: 'merge',
  summary: 'Combine several datasets: a small file that every command takes like a folder',
  arguments: {
    datasets: { type: 'string', array: true, demandOption: true, describe: 'Folders of shards, or URLs' },
  },
  options: {
    output: {
      type: 'string',
      requiresArg: true,
      demandOption: true,
      group: 'Output',
      placeholder: 'FILE',
      isCommon: true,
      describe: 'File to write, such as both.json',
    },
    'class-lists': {
      choices: ['name', 'offset', 'apart'] as const,
      default: 'name' as const,
      requiresArg: true,
      group: 'Classes and labels',
      placeholder: 'RULE',
      isCommon: true,
      describe:
        'How to combine the classes: name joins classes of the same name, offset numbers the lists one after the other, apart keeps all numbers',
    },
    copy: COPY_FLAG,
  },
  examples: [
    ['$0 merge photos paintings --output both.json', 'Nothing is copied; you can add weights to the file'],
    ['$0 bench both.json', 'Use it like a folder'],
    ['$0 merge photos paintings --output both.json --copy both', 'Also copy the samples into new shards'],
  ],
  handler: async ({ datasets, output, classLists, copy, json }) => {
    if (!output.endsWith('.json'))
      throw new UsageError(`--output takes a file with the extension .json, not "${output}".`);
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
    // If a dataset cannot be opened, nothing is written.
    const opened = datasets.map((place) => ({ dataset: place }));
    await using dataset = await openMixture(opened, { classLists });
    const { size, classes } = dataset;
    const repeated = await findDuplicateKeys(dataset);
    await writeAtomically(output, text, { ifAbsent: true }).catch((error) => {
      if (!(error instanceof FileExistsError)) throw error;
      throw new UsageError(`${output} already exists and is not replaced: choose another name, or remove the file.`);
    });
    await flushFolder(folder);
    const copied = copy === undefined ? [] : [await copyView(output, {}, copy)];
    if (json) {
      const duplicateKeys = { count: repeated.count, examples: repeated.examples };
      const facts = { samples: size, datasets: datasets.length, classes: classes.length };
      return print(JSON.stringify({ output, ...facts, duplicateKeys, copy: copy ?? null }));
    }
    const [first] = repeated.examples;
    const counts = `${countOf(size, 'sample')} of ${countOf(datasets.length, 'dataset')}, ${countOf(classes.length, 'class', 'classes')}`;
    const shared =
      first === undefined
        ? []
        : [
            `  ${countOf(repeated.count, 'duplicate key')}, such as ${escapeControls(first)}: a lookup by key returns the first sample`,
          ];
    await print([`Wrote ${escapeControls(output)}: ${counts}.`, ...shared, ...copied].join('\n'));
  },
});
