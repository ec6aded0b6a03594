import path from 'node:path';
import { inspect } from 'node:util';
import { escapeControls, toMessage } from '@shardtool/base/text';
import { isJsonLog, log, setLogFormat } from './log.js';

/** The command line is invalid: exit code 2. */
export class UsageError extends Error {}

/** The work was stopped by a signal: exit code 128 and its number, as shells count it. */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: 'SIGINT' | 'SIGTERM', message: string) {
    super(message);
    this.exitCode = signal === 'SIGINT' ? 130 : 143;
  }
}

/** The command finished and found a fault, which it has already printed: exit code 1. */
export function foundFault(): void {
  process.exitCode = 1;
}

/**
 * Prints one sentence to standard error, with the stack if `verbose`, and sets the exit code: 2 if the command line is
 * invalid or names a location that does not exist, otherwise 1. `flags` are the flags of the command, in kebab case.
 */
export async function fail(thrown: unknown, words: readonly string[], flags: readonly string[]): Promise<void> {
  const verbose = isSwitchedOn('verbose', words);
  setLogFormat(asksJsonLog(words) ? 'json' : 'text');
  const { asFileError, messageIn, onCommandLine, OptionError, ShardtoolError } = await import('@shardtool/base');
  const error = asFileError(thrown);
  const isUsage = error instanceof UsageError || error instanceof OptionError || namesNothing(error, words);
  process.exitCode = isUsage ? 2 : error instanceof Interrupted ? error.exitCode : 1;
  let text = error instanceof Error ? messageIn(error, onCommandLine) : String(error);
  if ((error as Error).name === 'SampleChecksumError' && flags.includes('exclude-keys'))
    text += ' To exclude such samples, use --exclude-keys.';
  const isForeseen = isUsage || error instanceof ShardtoolError || error instanceof Interrupted;
  if (!isForeseen)
    text += ' This is a bug in shardtool: please report it, with the output of the same command and --verbose.';
  const message = toMessage(text.replace(/\s*\n\s*/g, ' '));
  if (isSwitchedOn('json', words)) await print(JSON.stringify({ error: errorObject(error, message) }));
  if (isJsonLog()) log('error', message, { event: 'error', ...errorObject(error, message) });
  else console.error(`shardtool: ${message}`);
  if (verbose) console.error(withColours(error));
}

/** The words before `--`: those after it are never options. */
function beforeDashes(words: readonly string[]): readonly string[] {
  const end = words.indexOf('--');
  return end < 0 ? words : words.slice(0, end);
}

/** Whether the words set a switch. They may be words that could not be parsed. */
function isSwitchedOn(name: string, words: readonly string[]): boolean {
  const last = beforeDashes(words).findLast((word) => /^--(?:no-)?([^=]+)/.exec(word)?.[1] === name);
  return last === `--${name}` || last === `--${name}=true`;
}

/** True if the words of the command line ask for JSON on standard error. It may be impossible to parse them. */
function asksJsonLog(words: readonly string[]): boolean {
  const before = beforeDashes(words);
  return before.some(
    (word, i) => word === '--log-format=json' || (word === 'json' && before[i - 1] === '--log-format'),
  );
}

/** An error for programs: its stable code, message and location. */
function errorObject(error: unknown, message: string): object {
  const { shard, key, offset, path: file, status, help } = error as Record<string, unknown>;
  return { code: codeOf(error), message, exitCode: process.exitCode, help, shard, key, offset, path: file, status };
}

function codeOf(error: unknown): string {
  if (error instanceof UsageError) return 'ERR_SHARDTOOL_USAGE';
  if (error instanceof Interrupted) return 'ERR_SHARDTOOL_INTERRUPTED';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : 'ERR_SHARDTOOL_INTERNAL';
}

/** Whether the command line names something that does not exist: a source, a dataset, a key, an overlay. */
function namesNothing(error: unknown, words: readonly string[]): boolean {
  if (!(error instanceof Error)) return false;
  const { path: place, key } = error as { readonly path?: unknown; readonly key?: unknown };
  const { name, code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (error.name === 'SampleNotFoundError') return words.includes(String(key));
  if (error.name === 'OverlayError') return name === 'FileNotFoundError';
  if (typeof place !== 'string' || !words.some((word) => path.resolve(word) === path.resolve(place))) return false;
  return code === 'ENOENT' || NOTHING.includes(error.name);
}

/** Names of errors about a location that has nothing for the command. Some come from a worker, without their class. */
const NOTHING = ['FileNotFoundError', 'SourceError', 'UnfinishedPackError', 'NoImagesError'];

const ESCAPE = '\u001b';
const COLOUR = new RegExp(`(${ESCAPE}\\[\\d+m)`);

/** The error with its stack and causes. All terminal control codes except colours are escaped. */
function withColours(error: unknown): string {
  const colors = process.stderr.isTTY === true && process.stderr.hasColors();
  const parts = inspect(error, { colors }).split(COLOUR);
  return parts.map((part) => (COLOUR.test(part) ? part : escapeControls(part, '\n'))).join('');
}

/** The reader of a pipe ended early, as in `shardtool ls | head`. That is not an error. */
export function endQuietlyOnClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    console.error(`shardtool: standard output cannot be written to (${error.message}).`);
    process.exit(1);
  });
}

/**
 * Prints lines of text or JSON. They must not contain terminal control codes: callers pass values through {@link escapeControls}.
 */
export function print(text: string): Promise<void> | void {
  return write(escapeControls(`${text}\n`, '\n\t'));
}

/** Resolves when standard output accepts more data. Null if it accepts data now. */
let drained: Promise<void> | null = null;

/** Writes text or bytes, and waits while the pipe is full, so that a long listing does not fill the memory. */
export function write(text: string | Uint8Array): Promise<void> | void {
  if (process.stdout.write(text)) return;
  drained ??= new Promise((resolve) =>
    process.stdout.once('drain', () => {
      drained = null;
      resolve();
    }),
  );
  return drained;
}
