import { spawn } from 'node:child_process';
import { OptionError, option, ShardtoolError, sentence } from '@shardtool/base';
import { escapeControls } from '@shardtool/base/text';
import { command } from '../../command.js';
import { DATASET_ARGUMENT } from '../../options/arguments.js';
import { DATASET_FLAGS, openGiven } from '../../options/dataset-flags.js';
import { wholeNumber } from '../../options/flags.js';
import { ANNOTATIONS_FLAG, readAnnotationsFlag } from '../../options/transform-flag.js';
import { log } from '../../terminal/log.js';
import { print } from '../../terminal/outcome.js';
import { ProgressView } from '../../terminal/progress-view.js';
import { countOf, formatCount } from '../../terminal/size.js';
import type { Marks } from '../../view/marks.js';

export const viewCommand = command({
  name: 'view',
  summary: 'Browse a dataset in the browser: filter, sort, zoom, mark samples',
  arguments: {
    dataset: { type: 'string', describe: `${DATASET_ARGUMENT.describe}. Optional with --static` },
  },
  options: {
    open: {
      type: 'boolean',
      default: false,
      group: 'Output',
      isCommon: true,
      describe: 'Open the page in the browser',
    },
    port: {
      ...wholeNumber('--port', 'Port on 127.0.0.1', { from: 0, to: 65_535, default: 0 }),
      group: 'Output',
      placeholder: 'PORT',
      isCommon: true,
      defaultDescription: 'a free port',
    },
    static: {
      type: 'string',
      group: 'Output',
      placeholder: 'FILE',
      describe: 'Write a page for a web server instead: one file that shows any dataset by its URL',
    },
    annotations: ANNOTATIONS_FLAG,
    ...DATASET_FLAGS,
  },
  examples: [
    ['$0 view shards --open', 'Open the page; press Ctrl-C to stop'],
    ['$0 view s3://bucket/shards --port 8080', 'Browse shards in a bucket, and print the address'],
    ['$0 view https://example.org/shards --static index.html', 'Write a static page that shows the dataset'],
  ],
  handler: async ({ dataset: location, annotations, port, open, json, static: file, ...given }) => {
    if (file !== undefined) {
      const { writeStatic } = await import('../../view/write-static.js');
      await writeStatic(file, new URL('./page/static.html', import.meta.url), location);
      const about =
        location === undefined ? 'Open it with the URL of a dataset: FILE#https://example.org/shards' : 'Open it';
      await print(json ? JSON.stringify({ file }) : `${escapeControls(file)} is written. ${about} from a web server.`);
      return;
    }
    if (location === undefined) {
      throw new OptionError(
        {},
        sentence`view needs a dataset: give a folder of shards or a URL, or ${option('static')} to write a page.`,
      );
    }
    const { startServer } = await import('../../view/server/server.js');
    await using dataset = await openGiven(location, given);
    const progress = await ProgressView.open();
    const server = await startServer(dataset, {
      port,
      location,
      overlay: given.overlay,
      annotations: await readAnnotationsFlag(annotations),
      page: new URL('./page/', import.meta.url),
      onProgress: (done) => {
        const parts = [`${formatCount(done)} of ${countOf(dataset.size, 'sample')}`];
        progress.show({ stage: 'read indexes', done, total: dataset.size, parts });
      },
    }).finally(() => progress.hide());
    const { address } = server;
    // Listen for signals before the address is printed, so that no signal loses marks.
    const stopped = new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
    const say = json ? (line: string) => log('info', line, { event: 'view' }) : print;
    await print(
      json
        ? JSON.stringify({ address })
        : `Serving ${escapeControls(location)} at ${address}\nAnyone on this machine who has the address can see it. Press Ctrl-C to stop.`,
    );
    if (open) await openBrowser(address, say);
    await stopped;
    await server.close();
    await keepMarks(server.marks, location, say);
  },
});

/** Writes a line for people: to standard output, or with --json to standard error. */
type Say = (line: string) => Promise<void> | void;

/** Commands that open an address in the browser, by platform. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

async function openBrowser(address: string, say: Say): Promise<void> {
  const [program, ...words] = OPENERS[process.platform] ?? ['xdg-open'];
  const failed = await new Promise<Error | null>((resolve) => {
    const child = spawn(program, [...words, address], { stdio: 'ignore', detached: true });
    child.once('error', resolve);
    child.once('spawn', () => resolve(null));
    child.unref();
  });
  if (failed !== null) await say(`No browser could be opened (${failed.message}): open the address above yourself.`);
}

/** Saves unsaved marks as an overlay. If the overlay cannot be written, it lists the marks, so that no work is lost. */
async function keepMarks(marks: Marks, location: string, say: Say): Promise<void> {
  const { count } = marks;
  if (count === 0) return;
  try {
    const { file, overlay } = await marks.save(await marks.freeName());
    await say(
      `${countOf(count, 'unsaved mark')} written to the overlay ${escapeControls(file)}.\n` +
        `To use it with any command: --overlay ${escapeControls(overlay)}`,
    );
  } catch (error) {
    if (!(error instanceof ShardtoolError)) throw error;
    await say(
      `${escapeControls(location)} cannot store an overlay (${escapeControls(error.message)}); your marks are:`,
    );
    for (const { key, mark } of marks.list().marks) await say(JSON.stringify({ key, ...mark }));
  }
}
