import type { Preset, ViewPreset } from '@shardtool/reader';
import { command } from '../../command.js';
import { print } from '../../terminal/outcome.js';

export const transformsCommand = command({
  name: 'transforms',
  summary: 'List the transforms that have a name, or print one as JSON',
  details:
    'Loaders take the name, or the JSON in a file: save the output, change it, and pass the file as the transform. A name of several views belongs to the option views.',
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
    const { namedSteps, PRESETS, VIEW_PRESETS } = await import('@shardtool/reader');
    const views = Object.entries<ViewPreset>(VIEW_PRESETS)
      .map(([one, preset]) => ({ name: one, about: preset.about, views: preset.views }))
      .filter((one) => name === undefined || one.name === name);
    if (name !== undefined && !json) {
      await print(views.length > 0 ? JSON.stringify(views[0]!.views, null, 2) : stepLines(namedSteps(name)));
      return;
    }
    const transforms = Object.entries<Preset>(PRESETS)
      .map(([one, { about, steps }]) => ({ name: one, about, steps }))
      .filter((one) => name === undefined || one.name === name);
    if (json) {
      // A file, or a name that does not exist.
      if (name !== undefined && transforms.length + views.length === 0)
        transforms.push({ name, about: '', steps: namedSteps(name) });
      await print(JSON.stringify({ transforms, views }));
      return;
    }
    const width = Math.max(...[...transforms, ...views].map((one) => one.name.length)) + 2;
    const lines = (list: readonly { readonly name: string; readonly about: string }[]) =>
      list.map((one) => `${one.name.padEnd(width)}${one.about}`).join('\n');
    await print(`${lines(transforms)}\n\nFor the option views:\n${lines(views)}`);
  },
});

/** One step per line. */
function stepLines(steps: readonly object[]): string {
  return `[\n${steps.map((step) => `  ${JSON.stringify(step)}`).join(',\n')}\n]`;
}
