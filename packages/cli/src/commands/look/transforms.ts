import type { Preset } from '@shardtool/reader';
import { command } from '../../command.js';
import { print } from '../../terminal/outcome.js';

export const transformsCommand = command({
  name: 'transforms',
  summary: 'List the transforms that have a name, or print one as JSON',
  details:
    'Loaders take the name, or the JSON in a file: save the output, change it, and pass the file as the transform.',
  isLocal: true,
  arguments: {
    name: { type: 'string', describe: 'Name of the transform. Default: list all' },
  },
  options: {},
  examples: [
    ['$0 transforms', 'All names'],
    ['$0 transforms deit3 > mine.json', 'A copy to change; then --transform mine.json'],
  ],
  handler: async ({ name, json }) => {
    const { namedSteps, PRESETS } = await import('@shardtool/reader');
    if (name !== undefined && !json) {
      await print(stepLines(namedSteps(name)));
      return;
    }
    const transforms = Object.entries<Preset>(PRESETS)
      .map(([one, { about, steps }]) => ({ name: one, about, steps }))
      .filter((one) => name === undefined || one.name === name);
    if (json) {
      // A file, or a name that does not exist.
      if (name !== undefined && transforms.length === 0) transforms.push({ name, about: '', steps: namedSteps(name) });
      await print(JSON.stringify({ transforms }));
      return;
    }
    const width = Math.max(...transforms.map((one) => one.name.length)) + 2;
    await print(transforms.map((one) => `${one.name.padEnd(width)}${one.about}`).join('\n'));
  },
});

/** A step per line. */
function stepLines(steps: readonly object[]): string {
  return `[\n${steps.map((step) => `  ${JSON.stringify(step)}`).join(',\n')}\n]`;
}
