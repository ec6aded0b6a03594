import { expect, test } from 'vitest';
import { runCli } from './cli.js';
import { UsageError } from './terminal/outcome.js';

/** The sentence with which a command line is turned down; it is turned down before anything is done. */
async function refusal(...words: string[]): Promise<string> {
  let refused: unknown;
  await runCli(words, async (error) => {
    refused = error;
  });
  expect(refused).toBeInstanceOf(UsageError);
  return (refused as Error).message;
}

test.each([
  ['', 'Say what to do. "shardtool --help" lists the commands.'],
  ['frobnicate', 'It does not take this: frobnicate. "shardtool --help" lists the commands.'],
  ['pakc a b', 'There is no such command; did you mean "pack"? "shardtool --help" lists the commands.'],
  ['pack a', 'Arguments given: 1, needed: 2. "shardtool pack --help" says more.'],
  ['ls a b', 'It does not take this: b. "shardtool ls --help" says more.'],
  ['ls a --sample', 'There is no option --sample; did you mean "--samples"? "shardtool ls --help" says more.'],
  ['pack a b -j 2', 'There is no option -j. "shardtool pack --help" says more.'],
  ['pack -x a b', 'There is no option -x. "shardtool pack --help" says more.'],
  ['pack --quite a b', 'There is no option --quite; did you mean "--quiet"? "shardtool pack --help" says more.'],
  [
    'convert a b --fromat tar',
    'There is no option --fromat; did you mean "--format"? "shardtool convert --help" says more.',
  ],
  ['-v', 'There is no option -v. "shardtool --help" lists the commands.'],
])('"shardtool %s" is turned down with a way on', async (line, sentence) => {
  expect(await refusal(...line.split(' ').filter(Boolean))).toBe(sentence);
});

test.each([
  ['pack a b --format zip', '--format "zip"; it may be "tar", "lmdb", "msgpack".'],
  ['convert a b --format zip', '--format "zip"; it may be "tar", "lmdb", "msgpack", "mds", "tfrecord", "parquet".'],
  ['convert a b --format=zip', '--format "zip"; it may be "tar", "lmdb", "msgpack", "mds", "tfrecord", "parquet".'],
  ['convert a b --format zip', '--format "zip"; it may be "tar", "lmdb", "msgpack", "mds", "tfrecord", "parquet".'],
  ['convert a b --format tar --links twice', '--links "twice"; it may be "skip", "follow".'],
  ['convert a b --format tar --max-shard-bytes lots', '--max-shard-bytes takes a size'],
  ['convert a b -q --format lmdb --lmdb-values all', '--lmdb-values "all"; it may be "sample", "image".'],
  ['pack a b --format tar --format lmdb', '--format is given more than once.'],
  [
    'pack a b --max-shard-bytes lots',
    '--max-shard-bytes takes a size, as 256MB, 64MiB or a number of bytes, and not "lots".',
  ],
  ['pack a b --max-shard-bytes -5', '--max-shard-bytes takes a size'],
  ['pack a b --max-shard-bytes 0', '--max-shard-bytes takes a size'],
  ['pack a b --max-shard-samples 0', '--max-shard-samples takes a whole number from 1 on.'],
  ['pack a b --seed -1', '--seed takes a whole number from 0 on.'],
  ['pack a b --seed 9007199254740992', '--seed takes a whole number from 0 on.'],
  ['pack a b --resize 1.5', '--resize takes a whole number from 1 to 65,535.'],
  ['pack a b --quality 101', '--quality takes a whole number from 1 to 100.'],
  [
    'pack a b --max-bad 1.5',
    '--max-bad takes a percentage such as 1%, or a number below 1 such as 0.01, and not "1.5".',
  ],
  ['pack a b --max-bad 1', '--max-bad takes a percentage such as 1%, or a number below 1 such as 0.01, and not "1".'],
  ['pack a b --max-bad -1%', '--max-bad takes a percentage'],
  ['pack a b --workers x', '--workers takes a whole number from 1 to 1,024.'],
  ['pack a b --workers 1 --workers 2', '--workers is given more than once.'],
  ['pack a b --workers', '--workers takes a value.'],
  ['verify a --workers -1', '--workers takes a whole number from 1 to 1,024.'],
  ['bench a --epochs 0', '--epochs takes a whole number from 1 on.'],
  ['bench a --batch-size NaN', '--batch-size takes a whole number from 1 on.'],
  ['bench a --batch-size Infinity', '--batch-size takes a whole number from 1 on.'],
  ['bench a --step-ms -1', '--step-ms takes a number of milliseconds, 0 or more.'],
  ['bench a --step-ms soon', '--step-ms takes a number of milliseconds, 0 or more.'],
  ['bench a --transform train256', '--transform takes train224, eval224 or a JSON file, and train256 cannot be read'],
  ['bench a --prefetch-batches 0', '--prefetch-batches takes a whole number from 1 on.'],
  ['plan a --world-size 0', '--world-size takes a whole number from 1 on.'],
  ['plan a --streams 65537', '--streams takes a whole number from 1 to 65,536.'],
  ['plan a --shuffle-buffer-size 1e99', '--shuffle-buffer-size takes a whole number from 1 on.'],
])('"shardtool %s" is turned down with what the flag takes', async (line, sentence) => {
  expect(await refusal(...line.split(' '))).toContain(sentence);
});
