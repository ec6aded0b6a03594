import { expect, test } from 'vitest';
import { runCli } from './cli.js';
import { UsageError } from './terminal/outcome.js';

/** The message with which a command line is rejected, before anything is done. */
async function refusal(...words: string[]): Promise<string> {
  let refused: unknown;
  await runCli(words, async (error) => {
    refused = error;
  });
  expect(refused).toBeInstanceOf(UsageError);
  return (refused as Error).message;
}

test.each([
  ['frobnicate', 'Unknown command "frobnicate". See "shardtool --help".'],
  ['pakc a b', 'Unknown command "pakc"; did you mean "pack"? See "shardtool --help".'],
  ['help pakc', 'Unknown command "pakc"; did you mean "pack"? See "shardtool --help".'],
  ['overlay lst a', 'Unknown command "overlay lst"; did you mean "ls"? See "shardtool overlay --help".'],
  ['--overwrite a', 'Expected a command before --overwrite, such as "shardtool pack". See "shardtool --help".'],
  [
    'pack a',
    'Missing argument: <output>. Usage: shardtool pack <source> <output> [options]. See "shardtool pack --help".',
  ],
  [
    'cat --json',
    'Missing arguments: <dataset> <key>. Usage: shardtool cat <dataset> <key> [field] [options]. See "shardtool cat --help".',
  ],
  [
    'relabel a b --labels c.csv',
    'Unexpected argument: b; did you mean --name b? Usage: shardtool relabel <dataset> [options]. See "shardtool relabel --help".',
  ],
  ['ls a b', 'Unexpected argument: b. Usage: shardtool ls <dataset> [options]. See "shardtool ls --help".'],
  ['relabel a', 'Missing option: --labels <FILE>. See "shardtool relabel --help".'],
  [
    'completion tcsh',
    'Invalid value "tcsh" for <shell>. Choose one of: bash, zsh, fish. See "shardtool completion --help".',
  ],
  ['ls a --sample', 'Unknown option --sample; did you mean "--samples"? See "shardtool ls --help".'],
  ['pack a b -j 2', 'Unknown option -j. See "shardtool pack --help".'],
  ['pack -x a b', 'Unknown option -x. See "shardtool pack --help".'],
  [
    'pack -qh a b',
    'Unknown option -qh. Put "--" before a key or file name that begins with "-". See "shardtool pack --help".',
  ],
  ['bench a --no-workers', 'Unknown option --no-workers; did you mean "--workers"? See "shardtool bench --help".'],
  ['ls a --no-overlay', 'Unknown option --no-overlay; did you mean "--overlay"? See "shardtool ls --help".'],
  ['pack --quite a b', 'Unknown option --quite; did you mean "--quiet"? See "shardtool pack --help".'],
  ['convert a b --fromat tar', 'Unknown option --fromat; did you mean "--format"? See "shardtool convert --help".'],
  ['-v', 'Expected a command before -v, such as "shardtool pack". See "shardtool --help".'],
])('"shardtool %s" is rejected with a suggestion', async (line, sentence) => {
  expect(await refusal(...line.split(' ').filter(Boolean))).toBe(sentence);
});

test.each([
  ['pack a b --format zip', 'Invalid value "zip" for --format. Choose one of: tar, lmdb, msgpack.'],
  [
    'convert a b --format zip',
    'Invalid value "zip" for --format. Choose one of: tar, lmdb, msgpack, mds, tfrecord, parquet.',
  ],
  [
    'convert a b --format=zip',
    'Invalid value "zip" for --format. Choose one of: tar, lmdb, msgpack, mds, tfrecord, parquet.',
  ],
  [
    'convert a b --format zip',
    'Invalid value "zip" for --format. Choose one of: tar, lmdb, msgpack, mds, tfrecord, parquet.',
  ],
  ['convert a b --format tar --links twice', 'Invalid value "twice" for --links. Choose one of: skip, follow.'],
  ['convert a b --format tar --max-shard-bytes lots', '--max-shard-bytes takes a size'],
  [
    'convert a b -q --format lmdb --lmdb-values all',
    'Invalid value "all" for --lmdb-values. Choose one of: sample, image.',
  ],
  ['pack a b --format tar --format lmdb', '--format is given more than once.'],
  [
    'pack a b --max-shard-bytes lots',
    '--max-shard-bytes takes a size such as 256MB, 64MiB or a number of bytes, not "lots".',
  ],
  ['pack a b --max-shard-bytes -5', '--max-shard-bytes takes a size'],
  ['pack a b --max-shard-bytes 0', '--max-shard-bytes takes a size'],
  ['pack a b --max-shard-samples 0', '--max-shard-samples takes a whole number of 1 or more, not "0".'],
  ['pack a b --seed -1', '--seed takes a whole number of 0 or more, not "-1".'],
  ['pack a b --seed 9007199254740992', '--seed takes a whole number of 0 or more, not "9007199254740992".'],
  ['pack a b --resize 1.5', '--resize takes a whole number from 1 to 65,535, not "1.5".'],
  ['pack a b --quality 101', '--quality takes a whole number from 1 to 100, not "101".'],
  ['pack a b --max-bad 1.5', '--max-bad takes a percentage such as 1%, or a number below 1 such as 0.01, not "1.5".'],
  ['pack a b --max-bad 1', '--max-bad takes a percentage such as 1%, or a number below 1 such as 0.01, not "1".'],
  ['pack a b --max-bad -1%', '--max-bad takes a percentage'],
  ['pack a b --workers x', '--workers takes a whole number from 1 to 1,024.'],
  ['pack a b --workers 1 --workers 2', '--workers is given more than once.'],
  ['pack a b --workers', '--workers needs a value.'],
  ['verify a --workers -1', '--workers takes a whole number from 1 to 1,024, not "-1".'],
  ['bench a --epochs 0', '--epochs takes a whole number of 1 or more, not "0".'],
  ['bench a --batch-size NaN', '--batch-size takes a whole number of 1 or more.'],
  ['bench a --batch-size Infinity', '--batch-size takes a whole number of 1 or more, not "Infinity".'],
  ['bench a --step-ms -1', '--step-ms takes a number of milliseconds of 0 or more, not "-1".'],
  ['bench a --step-ms soon', '--step-ms takes a number of milliseconds of 0 or more.'],
  [
    'bench a --transform train256',
    'Unknown transform "train256" for --transform. Choose train224, eval224 or a JSON file; train256 cannot be read',
  ],
  ['bench a --prefetch-batches 0', '--prefetch-batches takes a whole number of 1 or more, not "0".'],
  ['plan a --world-size 0', '--world-size takes a whole number of 1 or more, not "0".'],
  ['plan a --streams 65537', '--streams takes a whole number from 1 to 65,536, not "65537".'],
  ['plan a --shuffle-buffer-size 1e99', '--shuffle-buffer-size takes a whole number of 1 or more, not "1e+99".'],
])('"shardtool %s" is rejected with the values that the option accepts', async (line, sentence) => {
  expect(await refusal(...line.split(' '))).toContain(sentence);
});
