/** Mistakes that users make, each with the one sentence that they get. */
import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const folder = emptyFolder();
const before = process.cwd();

/** Files that the mistakes need, by their paths. */
function layFiles(): void {
  const photo = readFileSync('examples/photos/cat/cat_000.jpg');
  const files: Readonly<Record<string, string | Buffer>> = {
    'texts/a.txt': 'x',
    'labels/missing.csv': 'path,class\nnothere.jpg,cat\n',
    'labels/columns.csv': 'file,category\na,b\n',
    'labels/short.csv': 'path,class\ncat/cat_000.jpg\n',
    'labels/empty.csv': '',
    'bad/a/x.jpg': 'not an image',
    'bad/a/y.jpg': photo,
    'cut-image/a/x.jpg': photo.subarray(0, 9000),
    'same-key/a.b.jpg': photo,
    'same-key/a_b.jpg': photo,
    'steps/name.json': '[{"name": "RandomResizeCrop", "size": 64}]',
    'steps/size.json': '[{"name": "randomResizedCrop"}]',
    'steps/comma.json': '[{"name": "resize", "size": 8},]',
    'steps/object.json': '{"name": "resize"}',
    'steps/negative.json': '[{"name": "resize", "size": -3}]',
    'not.zip': 'PK',
    'a.tar.lz4': Buffer.from('04224d1864400000', 'hex'),
    'keys.txt': 'nokey\n',
    'mix.json': '{"mixture": [{"dataset": "nowhere"}]}',
    'classes.txt': 'cat\n',
  };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  mkdirSync(path.join(folder, 'empty'));
}

beforeAll(async () => {
  cpSync('examples/photos', path.join(folder, 'photos'), { recursive: true });
  layFiles();
  const packed = await packedPhotos();
  for (const copy of ['shards', 'cut', 'gone', 'bad-index', 'newer', 'bad-json'])
    cpSync(packed, path.join(folder, copy), { recursive: true });
  const at = (name: string) => path.join(folder, name);
  truncateSync(at('cut/000000.tar'), 100_000);
  rmSync(at('gone/000000.tar'));
  const index = readFileSync(at('bad-index/000000.parquet'));
  writeFileSync(at('bad-index/000000.parquet'), index.fill(0, 100, 400));
  const manifest = readFileSync(at('newer/dataset.json'), 'utf8');
  writeFileSync(at('newer/dataset.json'), manifest.replace(/"version": ?1/, '"version": 9'));
  writeFileSync(at('bad-json/dataset.json'), '{"version": 1,');
  process.chdir(folder);
});

afterAll(() => process.chdir(before));

const MISTAKES: readonly (readonly [line: string, code: number, message: string])[] = [
  ['pack fotos out', 2, 'The source fotos does not exist.'],
  [
    'pack photos',
    2,
    'Missing argument: <output>. Usage: shardtool pack <source> <output> [options]. See "shardtool pack --help".',
  ],
  ['pakc', 2, 'Unknown command "pakc"; did you mean "pack"? See "shardtool --help".'],
  ['nope', 2, 'Unknown command "nope". See "shardtool --help".'],
  ['pack photos out --fromat tar', 2, 'Unknown option --fromat; did you mean "--format"? See "shardtool pack --help".'],
  [
    'pack photos out --format zip',
    2,
    'Invalid value "zip" for --format. Choose one of: tar, lmdb, msgpack. See "shardtool pack --help".',
  ],
  ['convert shards out --format webdataset', 2, 'Invalid value "webdataset" for --format. Choose one of: …'],
  [
    'pack photos out --resize 256x256',
    2,
    '--resize takes a whole number from 1 to 65,535. See "shardtool pack --help".',
  ],
  [
    'pack photos/cat/cat_000.jpg out',
    2,
    'The source photos/cat/cat_000.jpg is not a folder; give the folder that contains the images.',
  ],
  [
    'pack empty out',
    2,
    'The source empty contains no file that can be packed; check the path, the patterns and the labels.',
  ],
  [
    'pack texts out',
    2,
    'The source texts contains no image among 1 file that can be packed; check the path, the patterns and the labels. To pack samples without images, set --primary txt.',
  ],
  [
    'ls nowhere',
    2,
    'nowhere cannot be opened: no such file or folder. Give a folder of shards, a shard file or a URL.',
  ],
  [
    'ls empty',
    2,
    'empty has no dataset.json: it is not a dataset, or its pack did not finish. Run "shardtool pack" again, or give the shards themselves.',
  ],
  ['verify photos', 1, 'photos holds images as single files and no shards. Pack it first, with "shardtool pack".'],
  ['cat shards cat/cat_0001', 2, 'shards has no sample with the key "cat/cat_0001"; did you mean "cat/cat_000"?'],
  [
    'cat shards cat/cat_001.jpg',
    2,
    'shards has no sample with the key "cat/cat_001.jpg"; keys have no extension: did you mean "cat/cat_001"?',
  ],
  [
    'bench shards --transform steps/name.json',
    2,
    'Step 1 of the transform, {"name":"RandomResizeCrop","size":64}, is unknown; did you mean "randomResizedCrop"? Known steps: …',
  ],
  [
    'bench shards --transform steps/size.json',
    2,
    'Step 1 of the transform, randomResizedCrop, is invalid (size is missing; it must be a number or a list). Its parameters: …',
  ],
  [
    'bench shards --transform steps/comma.json',
    2,
    'steps/comma.json is not JSON (Unexpected token \']\', ..."size": 8},]" is not valid JSON); it must contain a list of steps.',
  ],
  [
    'bench shards --transform steps/object.json',
    2,
    "The loader's option --transform is invalid: it is a list of steps, a preset such as 'train224', a JSON file or 'raw', not an object.",
  ],
  [
    'bench shards --transform steps/negative.json',
    2,
    'Step 1 of the transform, resize, is invalid (size must be at least 1, and is -3). Its parameters: …',
  ],
  [
    'bench shards --transform train256',
    2,
    'Unknown transform "train256" for --transform. Choose train224, eval224 or a JSON file; train256 cannot be read as a file: no such file or folder.',
  ],
  [
    'bench shards --where "widht > 3"',
    2,
    '--where, position 1 of "widht > 3": there is no column "widht" (did you mean "width"? there are …',
  ],
  [
    'bench shards --where "cls = \'cat\'"',
    2,
    '--where, position 7 of "cls = \'cat\'": a number is compared with a string ("cat"); the name of a class is in the column "class".',
  ],
  [
    'bench shards --where "width >"',
    2,
    '--where, position 8 of "width >": expected a column or a value, found the end.',
  ],
  [
    'bench shards --where "class = \'cta\'"',
    2,
    '--where, position 9 of "class = \'cta\'": there is no class "cta"; did you mean "cat"?',
  ],
  ['bench shards --where "width > 100000"', 2, 'No sample is selected: widen classes, keys, where or weights.'],
  [
    'pack photos out --labels labels/missing.csv',
    1,
    'labels/missing.csv:2 names nothere.jpg, which is not among the files of the source; correct it, allow rows without a file (--allow-missing-files), or list such rows in quarantine.jsonl with --on-bad quarantine.',
  ],
  [
    'pack photos out --labels labels/columns.csv',
    1,
    'labels/columns.csv:1 has the columns file, category, but no column "path" or "file_name" or "filename" or "image" or "image_id" or "id"; rename the column that identifies the images.',
  ],
  [
    'pack photos out --labels labels/short.csv',
    1,
    'labels/short.csv:2 has the wrong number of values: 1 for 2 columns.',
  ],
  ['pack photos out --labels labels/empty.csv', 1, 'The labels file labels/empty.csv has no rows.'],
  ['pack photos out --labels no.csv', 2, 'The file no.csv cannot be read: no such file or folder.'],
  [
    'pack bad out',
    1,
    'bad/a/x.jpg is not an image (JPEG, PNG, GIF, WebP, TIFF, AVIF, BMP, PPM, PGM or PBM). To skip such files and list them in quarantine.jsonl, set --on-bad quarantine.',
  ],
  [
    'pack bad out --on-bad quarantine',
    1,
    '1 of 2 images is bad, more than --max-bad allows (1 %). quarantine.jsonl lists all of them. To accept them, raise --max-bad. The first: bad/a/x.jpg is not an image (JPEG, PNG, GIF, WebP, TIFF, AVIF, BMP, PPM, PGM or PBM).',
  ],
  [
    'bench shards --split val',
    2,
    'The dataset has no splits: shards/overlays/split.jsonl does not exist. Create it with "shardtool split", or choose another overlay with --overlay.',
  ],
  [
    'bench shards --decode quick',
    2,
    'Invalid value "quick" for --decode. Choose one of: exact, scaled, fast. See "shardtool bench --help".',
  ],
  [
    'bench cut --batch-size 20',
    1,
    'cut/000000.tar ends at byte 100000, but its index refers to bytes up to …: it was truncated or replaced since it was packed; restore it, or repair the dataset with "shardtool verify --fix".',
  ],
  ['bench gone --batch-size 20', 1, 'gone/000000.tar cannot be opened: no such file or folder.'],
  ['ls az://x/y', 2, 'az://x/y is not a supported location: give a path, or a URL that begins with …'],
  ['ls ftp://x/y', 2, 'ftp://x/y is not a supported location: give a path, or a URL that begins with …'],
  [
    'ls hf://datasets/x',
    2,
    'hf://datasets/x is not a dataset of the Hub. Write hf://datasets/user/name, or hf://datasets/user/name@revision.',
  ],
  [
    'ls bad-index --samples',
    1,
    'bad-index/000000.parquet has changed since it was written; restore it, or rebuild it from its shard with "shardtool verify --fix" (for a tar of other software: "shardtool index --overwrite").',
  ],
  ['ls newer', 1, 'newer/dataset.json has version 9, but this shardtool reads versions up to 1; update shardtool.'],
  [
    'ls bad-json',
    1,
    'bad-json/dataset.json is damaged: Expected double-quoted property name in JSON at position 14; restore it, or run "shardtool verify --fix" to rebuild it.',
  ],
  [
    'pack cut-image out --check decode',
    1,
    'cut-image/a/x.jpg cannot be fully decoded: this JPEG cannot be decoded (premature end: it has no end marker). To skip such files and list them in quarantine.jsonl, set --on-bad quarantine.',
  ],
  [
    'pack same-key out',
    1,
    'a.b.jpg and a_b.jpg would both have the key "a_b": rename one of them. If one belongs to the other, add its extension to --fields. To skip the second and list it in quarantine.jsonl, set --on-bad quarantine.',
  ],
  [
    'convert not.zip out',
    1,
    'not.zip: it does not end like a zip, so it is not one, or was truncated at byte 2; fetch or write it again.',
  ],
  [
    'convert a.tar.lz4 out',
    1,
    'a.tar.lz4: it is compressed with lz4, which shardtool does not read. Decompress it with "lz4 -d", or convert it in a pipe ("lz4 -d -c FILE | shardtool convert - OUTPUT").',
  ],
  [
    'overlay add shards x --exclude-keys keys.txt',
    2,
    '--exclude-keys: shards has no sample with the key "nokey": correct it, or remove it from the list.',
  ],
  [
    'overlay show shards nope',
    2,
    'There is no overlay shards/overlays/nope.jsonl. "shardtool overlay ls" lists the overlays of a dataset.',
  ],
  [
    'overlay rm shards nope',
    2,
    'There is no overlay shards/overlays/nope.jsonl. "shardtool overlay ls" lists the overlays of a dataset.',
  ],
  [
    'bench shards --overlay nope',
    2,
    'There is no overlay shards/overlays/nope.jsonl. "shardtool overlay ls" lists the overlays of a dataset.',
  ],
  [
    'ls mix.json',
    1,
    'nowhere cannot be opened: no such file or folder. Give a folder of shards, a shard file or a URL.',
  ],
  [
    'pack photos out --classes classes.txt',
    2,
    'astronaut/astronaut_000.jpg has the class "astronaut", which is not in the list of classes; add it at the end of the list, or exclude the file.',
  ],
  [
    'pack photos out --max-shard-bytes 0',
    2,
    '--max-shard-bytes takes a size such as 256MB, 64MiB or a number of bytes, not "0". See "shardtool pack --help".',
  ],
  [
    'pack photos out --max-shard-bytes huge',
    2,
    '--max-shard-bytes takes a size such as 256MB, 64MiB or a number of bytes, not "huge". See "shardtool pack --help".',
  ],
  [
    'pack photos out --workers 0',
    2,
    '--workers takes a whole number from 1 to 1,024, not "0". See "shardtool pack --help".',
  ],
  ['pack photos out --workers two', 2, '--workers takes a whole number from 1 to 1,024. See "shardtool pack --help".'],
  [
    'pack photos out --quality 101',
    2,
    '--quality takes a whole number from 1 to 100, not "101". See "shardtool pack --help".',
  ],
  ['pack photos out --seed -1', 2, '--seed takes a whole number of 0 or more, not "-1". See "shardtool pack --help".'],
  [
    'pack photos out --max-bad 1.5',
    2,
    '--max-bad takes a percentage such as 1%, or a number below 1 such as 0.01, not "1.5". See "shardtool pack --help".',
  ],
  [
    'pack photos out --split val',
    2,
    '--split takes NAME=SHARE such as val=0.1 or val=10%, not "val". See "shardtool pack --help".',
  ],
  [
    'pack photos out --split val=2',
    2,
    '--split takes NAME=SHARE such as val=0.1 or val=10%, not "val=2". See "shardtool pack --help".',
  ],
  [
    'pack photos out --part 5/4',
    2,
    'The option --part must be a part and the number of parts, from "1/16" to "16/16", or "auto", not "5/4".',
  ],
  [
    'pack photos out --fields seg.png',
    2,
    'The option --fields is seg.png, but no file of the source has this extension; remove it, or give the extension that the files have.',
  ],
  [
    'pack photos out --include *.gif',
    2,
    'The source photos contains no file that can be packed; check the path, the patterns and the labels.',
  ],
  [
    'pack photos out --splits',
    2,
    'The option --splits packs the folders train, val and test, but photos has astronaut, cat, coffee, galaxies, moon, ...; remove the option, or rename the folders.',
  ],
  [
    'pack photos photos',
    1,
    'The output folder photos holds README.md and 6 more; pack to another folder, or empty this one: --overwrite removes only files that a pack made.',
  ],
  [
    'pack photos out --append',
    2,
    'out has no dataset.json: it is not a dataset, or its pack did not finish. Run "shardtool pack" again, or give the shards themselves.',
  ],
  [
    'commit empty',
    2,
    'empty has no dataset.json: it is not a dataset, or its pack did not finish. Run "shardtool pack" again, or give the shards themselves.',
  ],
  ['split shards --val 0', 2, 'The share of the split "val" is 0: it must be between 0 and 1.'],
  ['split shards', 2, 'Missing option: --val or --test. Give the share of a split, such as --val 0.1.'],
  [
    'split shards --val 0.1 --group nocol',
    2,
    'No sample has a column "nocol": "shardtool ls --samples --json" shows all columns.',
  ],
  [
    'subset shards s1 --classes cow',
    2,
    'The dataset has no class "cow": there are astronaut, cat, coffee, galaxies, moon, rocket.',
  ],
  ['relabel shards', 2, 'Missing option: --labels <FILE>. See "shardtool relabel --help".'],
  ['merge shards', 2, 'Missing option: --output <FILE>. See "shardtool merge --help".'],
  [
    'preview shards --output x.gif',
    2,
    '--output takes a file with the extension .png, .jpg, .jpeg, .webp, not "x.gif". See "shardtool preview --help".',
  ],
  [
    'preview shards --output g.png --grid 0x2',
    2,
    '--grid takes columns x rows, such as 8x8, not "0x2". See "shardtool preview --help".',
  ],
  [
    'cat shards',
    2,
    'Missing argument: <key>. Usage: shardtool cat <dataset> <key> [field] [options]. See "shardtool cat --help".',
  ],
  ['cat shards cat/cat_001 txt', 2, 'Sample "cat/cat_001" has no field "txt"; its fields are cls, jpg.'],
  [
    'unpack shards photos',
    1,
    'photos/galaxies/galaxies_009.jpg cannot be written (something is there already); unpack into an empty folder.',
  ],
  [
    'plan shards --batch-size 0',
    2,
    '--batch-size takes a whole number of 1 or more, not "0". See "shardtool plan --help".',
  ],
  [
    'plan shards --world-size 0',
    2,
    '--world-size takes a whole number of 1 or more, not "0". See "shardtool plan --help".',
  ],
  [
    'plan shards --step-ms -1',
    2,
    '--step-ms takes a number of milliseconds of 0 or more, not "-1". See "shardtool plan --help".',
  ],
  ['cache clear nowhere', 2, 'No such folder: nowhere. Give the folder of a cache.'],
  [
    'cache ls photos',
    2,
    'photos is not a cache of shardtool, and it contains other files: give an empty folder for the cache.',
  ],
  [
    'completion powershell',
    2,
    'Invalid value "powershell" for <shell>. Choose one of: bash, zsh, fish. See "shardtool completion --help".',
  ],
  [
    'view shards --port 99999',
    2,
    '--port takes a whole number from 0 to 65,535, not "99999". See "shardtool view --help".',
  ],
  ['verify shards --fix --source nowhere', 2, 'The source nowhere does not exist.'],
  [
    'index nowhere',
    2,
    'nowhere cannot be opened: no such file or folder. Give a folder of shards, a shard file or a URL.',
  ],
  ['convert photos out', 1, 'photos holds images as single files and no shards. Pack it first, with "shardtool pack".'],
  [
    'inspect shards --against nowhere',
    2,
    'nowhere cannot be opened: no such file or folder. Give a folder of shards, a shard file or a URL.',
  ],
  [
    'ls shards extra',
    2,
    'Unexpected argument: extra. Usage: shardtool ls <dataset> [options]. See "shardtool ls --help".',
  ],
  [
    'bench shards --aspect-buckets 512',
    2,
    "The loader's option --aspect-buckets is invalid: it is { area, step, maxRatio, crop }, { sizes, crop } or a list of sizes, each [height, width], not 512.",
  ],
  ['bench shards --decode-mode fast', 2, 'Unknown option --decode-mode. See "shardtool bench --help".'],
  [
    'stats shards --split tran',
    2,
    'The dataset has no splits: shards/overlays/split.jsonl does not exist. Create it with "shardtool split", or choose another overlay with --overlay.',
  ],
  [
    'compact shards --max-shard-bytes x',
    2,
    '--max-shard-bytes takes a size such as 256MB, 64MiB or a number of bytes, not "x". See "shardtool compact --help".',
  ],
  [
    'gc shards',
    2,
    'Choose the versions to remove: with --keep, all but the newest ones; with --older-than, the versions that were replaced that long ago.',
  ],
  ['erase shards', 2, 'Give either --keys or --where.'],
  [
    'restore shards abc',
    2,
    '"abc" is not a version: give at least the first 6 of its 64 hexadecimal digits. "shardtool log shards" lists all versions.',
  ],
  [
    'log nowhere',
    2,
    'nowhere cannot be opened: no such file or folder. Give a folder of shards, a shard file or a URL.',
  ],
  [
    'tune shards --cpu-budget 0',
    2,
    '--cpu-budget takes a whole number of 1 or more, not "0". See "shardtool tune --help".',
  ],
  [
    'verify shards --since x',
    2,
    '--since takes a time such as 30d, 12h, 15m or 90s, not "x". See "shardtool verify --help".',
  ],
  ['verify shards --sample 0', 2, '--sample takes a share above 0, such as 4%.'],
  ['unpack shards out --fields txt', 2, 'No sample has a field "txt"; the fields are cls, jpg.'],
  [
    'subset shards s --share 2',
    2,
    '--share takes a percentage such as 1%, or a number below 1 such as 0.01, not "2". See "shardtool subset --help".',
  ],
  [
    'ls shards --at 123456',
    2,
    'shards has no version 123456. "shardtool log shards" lists the versions that are kept; dataset.json is the current one.',
  ],
  [
    'pack photos out --on-bad skip',
    2,
    'Invalid value "skip" for --on-bad. Choose one of: raise, quarantine. See "shardtool pack --help".',
  ],
  ['preview shards --image seg.png --output y.png', 2, '--image: no sample has "seg.png": the fields are cls, jpg.'],
];

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

test('at least 101 mistakes are tested: 36 and 15 from reviews, and 50 more', () => {
  expect(MISTAKES.length).toBeGreaterThanOrEqual(101);
});

test.each(MISTAKES)('shardtool %s', async (line, code, message) => {
  const args = Array.from(line.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, plain]) => quoted ?? plain!);
  const outcome = await shardtool(...args);
  const read = outcome.stderr.replaceAll(`${folder}/`, '');
  const expected = `shardtool: ${message}\n`;
  // "…" is any text: a list that grows with new features, or a part that depends on which worker reads first.
  const pattern = new RegExp(`^${expected.split('…').map(escaped).join('.*')}$`);
  const shown = pattern.test(read) ? expected : read;
  expect([outcome.code, shown]).toEqual([code, expected]);
  rmSync('out', { recursive: true, force: true });
});

test('no message contains an error code, a system call or the words "is not right"', () => {
  const messages = MISTAKES.map(([, , message]) => message);
  expect(
    messages.filter((message) => /\bE[A-Z]{4,}\b|\bstat '|\bopen '|is not right|undefined|\[object/.test(message)),
  ).toEqual([]);
});
