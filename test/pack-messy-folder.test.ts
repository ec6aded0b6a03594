/** The complete output for packs of typical user folders. */
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { pack as packSource, Writer } from '@shardtool/writer';
import { expect, test, vi } from 'vitest';
import { collidingFolder, fileWith, listOf, maskedFolders, messyFolder, say } from './messy-folder.js';
import { jpeg, newFolder, PNG, samplesOf, tree } from './pack-workbench.js';

const SRC = messyFolder();

/** Packs, and returns the output with the source as SRC and the output as OUT. */
async function pack(source: string, flags: readonly string[], output = newFolder(), names = {}) {
  const said = await say(['pack', source, output, '--workers', '1', ...flags], { SRC: source, OUT: output, ...names });
  // The duration differs from run to run.
  return { ...said, stdout: said.stdout.replace(/^Took .*\n/m, ''), output };
}

const SKIPPED = '  4 files skipped: 1 db, 1 svg, 1 txt, 1 without an extension (skipped.jsonl lists them)\n';
const FIELDS =
  "shardtool reads them, but webdataset's to_tuple and batched, wids with PyTorch's collate and DALI want the same fields in every sample\n";

test('a bad file ends the pack, and the error names it and a remedy', async () => {
  const { code, stdout, stderr } = await pack(SRC, []);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(
    /^shardtool: SRC\/dog\/\S+ is .*\. To skip such files and list them in quarantine\.jsonl, set --on-bad quarantine\.\n$/,
  );
});

test('skipped files are counted by their reason, and listed', async () => {
  const { code, stdout, stderr, output } = await pack(SRC, ['--on-bad', 'quarantine', '--max-bad', '50%']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(
    'Packed 10 files (124 kB), 9 samples of 2 classes, into 1 shard in OUT (144 kB).\n' +
      '  2 images have another format than their extension; their fields have the name of the format\n' +
      SKIPPED +
      '  2 files are bad and were skipped: quarantine.jsonl says why\n' +
      `  the samples differ in their fields (of 9: jpeg in 1, jpg in 6, png in 2, txt in 1): ${FIELDS}`,
  );
  expect(listOf(output, 'skipped.jsonl')).toEqual([
    { path: 'cat/README', reason: 'its name has no extension, so it cannot be a field of a sample' },
    { path: 'cat/Thumbs.db', reason: 'it is not an image, and there is no image with the same stem next to it' },
    { path: 'cat/drawing.svg', reason: 'it is not an image, and there is no image with the same stem next to it' },
    { path: 'cat/notes.txt', reason: 'it is not an image, and there is no image with the same stem next to it' },
  ]);
  expect(
    listOf(output, 'quarantine.jsonl')
      .map((bad) => bad.path)
      .sort(),
  ).toEqual(['dog/empty.jpg', 'dog/text.png']);
});

test('a dry run prints what would be done, and lists bad files if it checks the files', async () => {
  const dry = await pack(SRC, ['--dry-run']);
  expect(dry.stdout).toContain('1 db, 1 svg, 1 txt, 1 without an extension (--dry-run --check header lists them)\n');
  expect(existsSync(dry.output)).toBe(false);

  const looked = await pack(SRC, ['--dry-run', '--check', 'header']);
  expect(looked.stdout).toMatch(/^Would pack 10 files \(.*\), 9 samples of 2 classes, into 1 shard in OUT\.\n/);
  expect(looked.stdout).toContain(
    `${SKIPPED}  2 files are bad (quarantine.jsonl says why), and the pack would stop at the first: --on-bad quarantine skips them\n`,
  );
  const lenient = await pack(SRC, ['--dry-run', '--check', 'header', '--on-bad', 'quarantine'], looked.output);
  expect(lenient.stdout).toContain(`${SKIPPED}  2 files are bad and were skipped: quarantine.jsonl says why\n`);
  expect(readdirSync(looked.output).sort()).toEqual(['pack.json', 'quarantine.jsonl', 'skipped.jsonl']);
  expect(listOf(looked.output, 'quarantine.jsonl')).toHaveLength(2);

  const decoded = await pack(SRC, ['--dry-run', '--check', 'decode'], looked.output);
  expect(listOf(decoded.output, 'quarantine.jsonl').map((bad) => bad.path)).toContain('dog/cut.jpg');

  const packed = await pack(SRC, ['--on-bad', 'quarantine', '--max-bad', '100%'], looked.output);
  expect(packed.code).toBe(0);
  const again = await pack(SRC, ['--dry-run', '--check', 'header'], looked.output);
  expect(again.stderr).toContain('OUT already contains a dataset');
});

test('a dry run that checks the files rejects a name that the shards do not allow, as the pack does', async () => {
  const long = Array(3).fill('x'.repeat(200)).join('/');
  const source = tree({ [`cat/${long}/1.jpg`]: jpeg(1) });
  const look = ['--dry-run', '--check', 'decode'];
  const reason = 'is 608 bytes long, but this layout allows at most 511; shorten it, or pack to tar.';
  const { code, stderr } = await pack(source, ['--format', 'lmdb']);
  expect(code).toBe(1);
  expect(stderr).toContain(reason);
  const looked = await pack(source, ['--format', 'lmdb', ...look]);
  expect(looked).toMatchObject({ code: 1, stderr: '' });
  expect(looked.stdout).toContain('1 file is bad (quarantine.jsonl says why), and the pack would stop there');
  expect(listOf(looked.output, 'quarantine.jsonl')[0]!.reason).toContain(reason);
  expect(await pack(source, look)).toMatchObject({ code: 0, stderr: '' });
});

test('if too many files are bad, all of them are listed', async () => {
  const { code, stderr, output } = await pack(SRC, ['--on-bad', 'quarantine']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^shardtool: 2 of 11 images are bad, more than --max-bad allows \(1 %\)\. quarantine\.jsonl lists all of them\. To accept them, raise --max-bad\. The first: /,
  );
  expect(listOf(output, 'quarantine.jsonl')).toHaveLength(2);
  expect((await pack(SRC, ['--on-bad', 'quarantine', '--max-bad', '100%'], output)).code).toBe(0);
});

test('files with the same key end the pack, or the later ones are quarantined', async () => {
  const source = collidingFolder();
  const stopped = await pack(source, []);
  expect(stopped.code).toBe(1);
  expect(stopped.stderr).toBe(
    'shardtool: cat/1.jpg and cat/1.png would both have the key "cat/1": rename one of them. If one belongs to the other, ' +
      'add its extension to --fields. To skip the second and list it in quarantine.jsonl, set --on-bad quarantine.\n',
  );
  const { stdout, output } = await pack(source, ['--on-bad', 'quarantine', '--max-bad', '100%']);
  expect(stdout).toContain('3 samples of 2 classes');
  expect(stdout).toContain('  2 files are bad and were skipped: quarantine.jsonl says why\n');
  expect(listOf(output, 'quarantine.jsonl')).toEqual([
    {
      path: 'cat/1.png',
      reason: 'cat/1.png would have the same key as cat/1.jpg, and only the latter is packed: rename cat/1.png.',
    },
    {
      path: 'cat/a_b.jpg',
      reason: 'cat/a_b.jpg would have the same key as cat/a.b.jpg, and only the latter is packed: rename cat/a_b.jpg.',
    },
  ]);
});

test('rows without a file end the pack, or are quarantined; images without a row are skipped', async () => {
  const labels = fileWith(
    'labels.csv',
    '\ufeffpath,class,"a ""note"""\r\ncat/1.jpg,pet,"x, y"\r\ndog/none.jpg,pet,\r\n',
  );
  const source = collidingFolder();
  const stopped = await pack(source, ['--labels', labels], newFolder(), { LABELS: labels });
  expect(stopped.stderr).toBe(
    'shardtool: LABELS:3 names dog/none.jpg, which is not among the files of the source; correct it, allow rows without a file (--allow-missing-files), or list such rows ' +
      'in quarantine.jsonl with --on-bad quarantine.\n',
  );
  const { stdout, output } = await pack(source, ['--labels', labels, '--on-bad', 'quarantine', '--max-bad', '100%']);
  expect(stdout).toContain('  4 files skipped: 4 without a row (skipped.jsonl lists them)\n');
  const [row] = listOf(output, 'quarantine.jsonl');
  expect(row!.path).toBe('dog/none.jpg');
  const [sample] = await samplesOf(output);
  expect(sample).toMatchObject({ key: 'cat/1', columns: { 'a "note"': 'x, y' } });
});

test('masks are packed with their images for each of three conventions', async () => {
  const { dots, suffixes, folders } = maskedFolders();
  const ways = [
    [dots, ['--fields', 'seg.png'], 'seg.png', 'cat'],
    [suffixes, ['--fields', '_mask.png'], 'mask.png', 'cat'],
    [folders, ['--pair', 'masks=seg.png'], 'seg.png', 'images/cat'],
  ] as const;
  for (const [source, flags, field, above] of ways) {
    const { stdout, stderr, output } = await pack(source, flags);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^Packed 6 files \(\S+ kB\), 3 samples of 1 class, into 1 shard in OUT \(\S+ kB\)\.\n$/);
    await using dataset = await openDataset(output);
    expect(dataset.classes).toEqual(['cat']);
    for (const i of [1, 2, 10]) {
      expect(Object.keys((await dataset.get(`${above}/i${i}`))!.fields).sort()).toEqual(['cls', 'jpg', field].sort());
    }
  }
});

test('the error for an extension or a folder that no file has lists the existing ones', async () => {
  const { suffixes, folders } = maskedFolders();
  expect((await pack(suffixes, ['--fields', 'mask.png'])).stderr).toBe(
    'shardtool: The option --fields is mask.png, but no file of the source has this extension; 3 files end in "_mask.png": use that.\n',
  );
  expect((await pack(suffixes, ['--fields', 'box.npy'])).stderr).toBe(
    'shardtool: The option --fields is box.npy, but no file of the source has this extension; remove it, or give the extension that the files have.\n',
  );
  const unpaired = await pack(folders, ['--pair', 'labels=txt']);
  expect(unpaired).toMatchObject({
    code: 2,
    stderr: 'shardtool: The option --pair is labels=txt, but the source has no folder called labels.\n',
  });
  const none = await pack(folders, []);
  expect(none.stdout).toContain(
    'use --pair masks=seg.png (masks/1.png becomes the field seg.png of images/1.jpg), or --yolo',
  );
  expect((await pack(folders, ['--pair', 'masks'])).code).toBe(2);
});

test('files of a paired folder are never images: files without an image, or with another extension, are skipped', async () => {
  const { folders } = maskedFolders();
  writeFileSync(path.join(folders, 'masks/cat/alone.png'), PNG);
  writeFileSync(path.join(folders, 'masks/cat/i1.txt'), 'x');
  const { stdout, output } = await pack(folders, ['--pair', 'masks=seg.png']);
  expect(stdout).toContain('3 samples');
  expect(stdout).toContain(
    '  2 files skipped: 1 with another extension, 1 without an image (skipped.jsonl lists them)\n',
  );
  expect(listOf(output, 'skipped.jsonl').map((file) => file.path)).toEqual(['masks/cat/alone.png', 'masks/cat/i1.txt']);
});

test('train and val above class folders become two datasets with the same list of classes', async () => {
  const source = tree({
    'train/cat/1.jpg': jpeg(1),
    'train/dog/2.jpg': jpeg(2),
    'val/dog/3.jpg': jpeg(3),
    'README.md': 'x',
  });
  expect((await pack(source, ['--dry-run'])).stdout).toContain(
    '  the classes are called train, val, like the splits of a dataset: --splits makes a dataset of each, or pack one of them (SRC/train)\n',
  );
  const { stdout, stderr, output } = await pack(source, ['--splits']);
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^Packed 2 files \(\S+ k?B\), 2 samples of 2 classes, into 1 shard in OUT\/train \(\S+ kB\)\.\nPacked 1 file \(\S+ k?B\), 1 sample of 2 classes, into 1 shard in OUT\/val \(\S+ kB\)\.\nNot packed, next to them: README\.md\.\n$/,
  );
  expect((await samplesOf(path.join(output, 'val'))).map(({ key, cls }) => [key, cls])).toEqual([['dog/3', 1]]);
  const again = await pack(source, ['--splits'], output);
  expect(again.stdout).toContain('OUT/val already has all of SRC/val.\n');
  // A class that is new in one of them is new in both.
  mkdirSync(path.join(source, 'train/ant'));
  writeFileSync(path.join(source, 'train/ant/4.jpg'), jpeg(4));
  expect((await pack(source, ['--splits', '--append'], output)).stdout).toContain('Added 1 file');
  await using val = await openDataset(path.join(output, 'val'));
  expect(val.classes).toEqual(['cat', 'dog', 'ant']);
  expect((await pack(SRC, ['--splits'])).stderr).toBe(
    'shardtool: The option --splits packs the folders train, val and test, but SRC has cat, dog; remove the option, or rename the folders.\n',
  );
  const many = newFolder();
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) mkdirSync(path.join(many, name), { recursive: true });
  expect((await pack(many, ['--splits'])).stderr).toContain(' has a, b, c, d, e, ...; remove the option,');
});

test('metadata.csv and metadata.jsonl with file_name are used as labels, which pack reports', async () => {
  const files = { '1.jpg': jpeg(1), '2.jpg': jpeg(2), '3.jpg': jpeg(3) };
  const csv = tree({
    ...files,
    'metadata.csv': '\ufefffile_name,text,label\r\n1.jpg,"a ""cat"", sitting",cat\r\n2.jpg,,dog\r\n',
  });
  const dry = await pack(csv, ['--dry-run']);
  expect(dry.stdout).toContain('  SRC/metadata.csv was used as labels, because it has a column file_name\n');
  expect(dry.stdout).toContain('  1 file skipped: 1 without a row (');
  const { output } = await pack(csv, []);
  const samples = (await samplesOf(output)).sort((a, b) => (a.key < b.key ? -1 : 1));
  expect(samples).toMatchObject([
    { key: '1', cls: 0, columns: { text: 'a "cat", sitting' } },
    { key: '2', cls: 1, columns: { text: null } },
  ]);
  const json = tree({ ...files, 'metadata.jsonl': '{"file_name": "3.jpg", "score": 0.5}\n' });
  expect((await pack(json, [])).stdout).toContain('1 sample of 0 classes');
  expect((await pack(json, ['--exclude', 'metadata.jsonl'])).stdout).toContain('3 samples of 0 classes');
  writeFileSync(path.join(json, 'metadata.csv'), 'file_name\n1.jpg\n');
  expect((await pack(json, [])).stderr).toContain(
    'both contain labels for the images; choose one with --labels, or exclude one.',
  );
});

test('an image next to the class folders is packed without a class, and pack reports it', async () => {
  const { stdout } = await pack(tree({ 'cat/1.jpg': jpeg(1), '2.jpg': jpeg(2) }), []);
  expect(stdout).toContain('2 samples of 1 class');
  expect(stdout).toContain('\n  1 sample has no class: its label is -1 in training\n');
});

test('a flat folder has no classes: pack prints a warning, and a loader warns once', async () => {
  const source = tree({ '1.jpg': jpeg(1), '2.jpg': jpeg(2) });
  const { stdout, output } = await pack(source, []);
  expect(stdout).toContain(
    '  all images are directly in SRC, so they have no class, and their label is -1 in training: put each class into its own folder, or set --labels\n',
  );
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  await using dataset = await openDataset(output);
  const loader = dataset.loader({ batchSize: 1, transform: 'raw', epochsPerLoop: 2 });
  for await (const batch of loader) expect([...batch.labels]).toEqual([-1]);
  await loader.close();
  const said = warn.mock.calls.map(([message]) => String(message)).filter((message) => message.includes('no class'));
  warn.mockRestore();
  expect(said).toEqual([expect.stringMatching(/^Sample "\d" has no class, so its label is -1\./)]);
});

test('an append keeps the options of the dataset, and reports changed and missing files', async () => {
  const source = tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2), 'cat/3.jpg': jpeg(3), 'cat/1.seg.png': PNG });
  const { output } = await pack(source, ['--dedupe', '--fields', 'seg.png', '--max-shard-samples', '2']);
  expect((await pack(source, ['--append'], output)).stdout).toBe('OUT already has all of SRC.\n');

  const ago = new Date(Date.now() - 3_600_000);
  for (const [name, bytes] of [
    ['4', 1],
    ['5', 5],
    ['6', 6],
    ['7', 7],
  ] as const)
    writeFileSync(path.join(source, `cat/${name}.jpg`), jpeg(bytes));
  writeFileSync(path.join(source, 'cat/7.seg.png'), PNG);
  writeFileSync(path.join(source, 'cat/2.jpg'), jpeg('longer'));
  utimesSync(path.join(source, 'cat/2.jpg'), ago, ago);
  const later = new Date(Date.now() + 3_600_000);
  utimesSync(path.join(source, 'cat/1.jpg'), later, later);
  rmSync(path.join(source, 'cat/3.jpg'));
  const { stdout } = await pack(source, ['--append'], output);
  expect(stdout).toMatch(
    /^Added 4 files \(\S+ k?B\), 3 samples of 1 class, in 2 shards to OUT \(\S+ kB\)\.\n {2}1 image has the same bytes as another and was skipped \(duplicates\.jsonl lists it\)\n {2}with the options of the first pack: --dedupe --fields seg\.png --max-shard-samples 2\n {2}2 files have changed, and 1 file is missing: their samples stay as they were packed \(changed\.jsonl lists them; the first: cat\/\d\.jpg\)\n$/,
  );
  expect(
    listOf(output, 'changed.jsonl')
      .map((file) => file.path)
      .sort(),
  ).toEqual(['cat/1.jpg', 'cat/2.jpg', 'cat/3.jpg']);
  const again = await pack(source, ['--append'], output);
  expect(again.stdout).toMatch(/\n {2}2 files have changed, and 1 file is missing: /);
  const sizes = await pack(source, ['--append', '--max-shard-samples', '9'], output);
  expect(sizes.stdout).not.toContain('--max-shard-samples 2');
});

test('labels for some of the images print a warning with their share first, or are an error if all images must have labels', async () => {
  const source = tree(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`${i}.jpg`, jpeg(i)])));
  const table = path.join(tree({ 'labels.csv': 'path,class\n7.jpg,cat\n8.jpg,dog\n' }), 'labels.csv');
  const [some, all] = [
    ['--labels', table],
    ['--labels', table, '--require-labels'],
  ];
  for (const flags of [some, [...some, '--dry-run']]) {
    const { stdout } = await pack(source, flags, newFolder(), { TABLE: table });
    expect(stdout.split('\n')[0]).toBe(
      'Warning: TABLE has rows for 2 of 300 images (0.67 %), and only those are packed. With --require-labels, this is an error.',
    );
  }
  expect(await pack(source, all, newFolder(), { TABLE: table })).toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'shardtool: TABLE has no row for 298 images of the source (the first: 0.jpg), but --require-labels requires one; add rows, or exclude these images with --exclude.\n',
  });
  writeFileSync(table, `path,class\n${Array.from({ length: 300 }, (_, i) => `${i}.jpg,cat\n`).join('')}`);
  const named = await pack(source, all);
  expect(named.stdout).toMatch(/^Packed 300 files/);
  // Labels of an append name only new images.
  writeFileSync(path.join(source, 'new.jpg'), jpeg('new'));
  writeFileSync(table, 'path,class\nnew.jpg,cat\n');
  const added = await say(['pack', source, named.output, '--append', ...all]);
  expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Added 1 file/) });
  expect(await pack(source, ['--require-labels'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--require-labels requires labels; also set'),
  });
});

test('rows without a file are bad files, or are counted and listed if they are allowed', async () => {
  const source = tree({ 'a.jpg': jpeg('a') });
  const tables = tree({
    'labels.csv': 'path,class\na.jpg,cat\ngone.jpg,dog\n',
    'coco.json': JSON.stringify({
      images: [
        { id: 1, file_name: 'a.jpg' },
        { id: 2, file_name: 'gone.jpg' },
      ],
      annotations: [],
      categories: [],
    }),
  });
  for (const flags of [
    ['--labels', path.join(tables, 'labels.csv')],
    ['--coco', path.join(tables, 'coco.json')],
  ]) {
    const refused = await pack(source, flags);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--allow-missing-files') });
    const { code, stdout, output } = await pack(source, [...flags, '--allow-missing-files', '--max-bad', '0']);
    expect(code).toBe(0);
    expect(stdout).toContain('  1 row of the labels has no file in the source (skipped.jsonl lists it)\n');
    expect(existsSync(path.join(output, 'quarantine.jsonl'))).toBe(false);
    const listed = listOf(output, 'skipped.jsonl').find((skipped) => skipped.path === 'gone.jpg');
    expect(listed!.reason).toContain('names gone.jpg, which is not among the files of the source.');
    // The same command finds the existing dataset.
    expect((await pack(source, [...flags, '--allow-missing-files'], output)).stdout).toContain(
      'OUT already has all of SRC.',
    );
  }
});

test('a folder without a packed image is reported, because it is not a class but ImageFolder numbers it', async () => {
  const source = tree({ 'a/1.jpg': jpeg(1), 'b/notes.txt': 'x', 'd/4.jpg': jpeg(4), 'shown/masks/1.png': PNG });
  mkdirSync(path.join(source, 'c'));
  const line =
    '  2 folders contain no packed image, so they are not classes; the first: b (ImageFolder numbers such folders';
  for (const flags of [[], ['--exclude', '**/none.jpg']]) expect((await pack(source, flags)).stdout).toContain(line);
  // The classes are given.
  const classes = path.join(tree({ 'classes.txt': 'a\nb\nc\nd\nshown\n' }), 'classes.txt');
  for (const flags of [
    ['--classes', classes],
    ['--exclude', 'b', '--exclude', 'c'],
  ])
    expect((await pack(source, flags)).stdout).not.toContain('no classes');
  const splits = tree({ 'train/a/1.jpg': jpeg(1), 'val/a/2.jpg': jpeg(2), 'val/b/3.jpg': jpeg(3) });
  for (const empty of ['train/b', 'train/c', 'val/c']) mkdirSync(path.join(splits, empty));
  const report = await packSource(splits, newFolder(), { splits: true, workers: 1 });
  expect(report.emptyFolders).toEqual(['c']);
});

test('samples that webdataset skips in a tar are counted, for any writer', async () => {
  const source = tree({ '__x__/1.jpg': jpeg(1), 'a/__x__/2.jpg': jpeg(2), '__a/3.jpg': jpeg(3), '__y__.jpg': jpeg(4) });
  const line =
    '  1 sample is skipped by webdataset, because its key begins with a folder like __x__; to read these tars with webdataset, rename that folder';
  const { stdout, output } = await pack(source, []);
  expect(stdout).toContain(line);
  expect((await say(['convert', output, newFolder()])).stdout).toContain(line);
  expect((await say(['convert', output, newFolder(), '--format', 'msgpack'])).stdout).not.toContain('because its key');
  expect((await pack(source, ['--format', 'lmdb'])).stdout).not.toContain('because its key');
  const writer = new Writer(newFolder());
  await writer.add({ key: '__x__/1', jpg: jpeg(1) });
  expect(await writer.close()).toMatchObject({ samples: 1, metaSamples: 1 });
});
