/** The server of `shardtool view`, with requests of a page, of another page and of any program. */
import { spawn } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { addOverlay, inspect, openDataset, readOverlay } from '@shardtool/reader';
import { convert, pack } from '@shardtool/writer';
import { beforeAll, expect, test, vi } from 'vitest';
import type { ViewServer } from '#cli/view/server/server';
import { shardtool } from './cli-here.js';
import { bin } from './cli-process.js';
import { cocoSet } from './coco-set.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { faultyServer } from './faulty-server.js';
import { maskedTar } from './masked-tar.js';
import { type Answered, ask, serve, takenPort } from './view-workbench.js';

const sharp = createRequire(new URL('../packages/writer/package.json', import.meta.url))('sharp');

type Rows = { total: number; rows: { index: number; key: string; cls: string; value: unknown; mark: unknown }[] };
type Counted = { bins: { from: number; to: number; all: number; selected: number }[] };
type Named = { values: { value: string; all: number; selected: number }[] };

let photos: string;
let server: ViewServer;

beforeAll(async () => {
  photos = await packedPhotos();
  await inspect(photos, { workers: 1 });
  server = await serve(photos);
});

function get(name: string, parameters: Record<string, unknown> = {}, from = server): Promise<Answered> {
  const text = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
  const search = new URLSearchParams(
    Object.entries(parameters).map(([key, value]) => [key, text(value)] as [string, string]),
  );
  return ask(`${from.address}api/${name}?${search}`);
}

async function post(name: string, body: unknown, from = server): Promise<Answered> {
  const headers = { 'Content-Type': 'application/json' };
  return ask(`${from.address}api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function rows(q: object, count = 60, from = 0): Promise<Rows> {
  return (await get('rows', { q, from, count })).json<Rows>();
}

test('the page and its files are served by the server, without references to other hosts', async () => {
  for (const [name, type] of [
    ['', 'text/html'],
    ['app.js', 'text/javascript'],
    ['style.css', 'text/css'],
    ['icon.svg', 'image/svg+xml'],
  ]) {
    const answer = await ask(server.address + name);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toContain(type);
    expect(answer.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    const policy = String(answer.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(answer.body.toString()).not.toMatch(/(src|href)="(https?:)?\/\//);
  }
});

test('without the secret, with another host name, or from another origin every request is rejected', async () => {
  const { origin, host, pathname } = new URL(server.address);
  const wrong = `${pathname.slice(0, -2)}${pathname.at(-2) === 'A' ? 'B' : 'A'}/`;
  const others = [
    '/',
    '/api/dataset',
    wrong,
    `${wrong}api/dataset`,
    pathname.slice(0, -1),
    `/x${pathname}`,
    `${pathname}../`,
  ];
  for (const other of others) {
    const { status, body } = await ask(origin + other);
    expect([other, status]).toEqual([other, other.endsWith('../') ? 404 : 403]);
    expect(body.toString()).not.toContain('shards');
  }
  const refused: Record<string, string>[] = [
    { Host: `evil.example:${new URL(server.address).port}` },
    { Host: '127.0.0.1' },
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: `http://${host.replace('127.0.0.1', 'localhost')}` },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
  ];
  for (const headers of refused) {
    for (const what of ['', 'app.js', 'api/dataset', 'api/thumbnail?index=0&size=160']) {
      expect([headers, (await ask(server.address + what, { headers })).status]).toEqual([headers, 403]);
    }
  }
  const own = { Origin: origin, 'Sec-Fetch-Site': 'same-origin' };
  expect((await ask(`${server.address}api/dataset`, { headers: own })).status).toBe(200);
});

test('nothing can be marked by a form, by a link, or with an invalid body', async () => {
  const body = JSON.stringify({ index: 0, mark: { kind: 'wrong' } });
  const form = { 'Content-Type': 'text/plain' };
  expect((await ask(`${server.address}api/mark`, { method: 'POST', headers: form, body })).status).toBe(400);
  expect((await get('mark', { index: 0 })).status).toBe(404);
  for (const wrong of [
    {},
    { index: -1, mark: null },
    { index: 0, mark: { kind: 'gone' } },
    { index: 60, mark: null },
  ]) {
    expect((await post('mark', wrong)).status).toBe(400);
  }
  expect((await post('mark', 'x'.repeat(2 ** 21))).json()).toEqual({ message: 'the body is too long' });
  expect((await get('marks')).json()).toEqual({ marks: [], saved: null });
});

test('the content of the dataset is described, with the columns of inspect', async () => {
  const info = (await get('dataset')).json<{ columns: { name: string; kind: string }[] }>();
  expect(info).toMatchObject({
    ...{ location: photos, format: 'tar', samples: 60, shards: 6, overlay: null, overlayName: 'marks-1' },
    classes: ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'],
  });
  expect(Object.fromEntries(info.columns.map(({ name, kind }) => [name, kind]))).toMatchObject({
    ...{ class: 'category', kind: 'category', width: 'number', height: 'number', aspect: 'number', bytes: 'number' },
    ...{ key: 'text', 'inspect.sharpness': 'number', 'inspect.brightness': 'number' },
  });
});

test('a query returns the samples that match where, ranges and values, and an error in where has a message and a column', async () => {
  expect((await rows({})).total).toBe(60);
  await using dataset = await openDataset(photos);
  const listed = (await rows({}, 5, 10)).rows;
  expect(listed.map(({ key }) => key)).toEqual(
    await Promise.all([10, 11, 12, 13, 14].map(async (index) => (await dataset.get(index)).key)),
  );
  const cats = await rows({ where: 'class = "cat" and inspect.sharpness > 0', values: { class: ['cat', 'moon'] } });
  expect([cats.total, new Set(cats.rows.map(({ cls }) => cls))]).toEqual([10, new Set(['cat'])]);
  const wide = (await rows({ ranges: { width: [640, 641] } })).total;
  expect(wide).toBe((await rows({ where: 'width = 640' })).total);
  expect(wide).toBeGreaterThan(0);

  const wrong = await get('rows', { q: { where: 'width > 10 and heigth < 5' }, from: 0, count: 1 });
  expect(wrong.status).toBe(400);
  expect(wrong.json()).toMatchObject({ column: 16, message: expect.stringContaining('no column "heigth"') });
  for (const q of [
    '{',
    { other: 1 },
    { ranges: { width: [1] } },
    { ranges: { nothing: [0, 1] } },
    { sort: { column: 'x', descending: true } },
  ]) {
    const refused = await get('rows', { q, from: 0, count: 1 });
    expect([q, refused.status]).toEqual([q, 400]);
    expect(refused.json<{ message: string }>().message).toMatch(/\.$/);
  }
});

test('every column sorts in both directions, numbers as numbers and names as names', async () => {
  const sorted = async (column: string, descending: boolean) =>
    (await rows({ sort: { column, descending } })).rows.map(({ value }) => value);
  for (const column of ['bytes', 'aspect', 'inspect.sharpness']) {
    const values = (await sorted(column, false)) as number[];
    expect(values).toEqual(values.toSorted((a, b) => a - b));
    expect(await sorted(column, true)).toEqual(values.toReversed());
  }
  for (const column of ['key', 'class', 'inspect.hash']) {
    const values = (await sorted(column, false)) as string[];
    expect(values).toEqual(values.toSorted());
    expect((await sorted(column, true))[0]).toBe(values.at(-1));
  }
});

test('a histogram counts all samples and those of the query, ignoring its own filter', async () => {
  const q = { where: 'class = "cat"', ranges: { width: [0, 1] } };
  const { bins } = (await get('histogram', { q, column: 'width' })).json<Counted>();
  expect(bins.reduce((sum, { all }) => sum + all, 0)).toBe(60);
  expect(bins.reduce((sum, { selected }) => sum + selected, 0)).toBe(10);
  for (const { from, to, all } of bins) {
    expect(all).toBe((await rows({ ranges: { width: [from, to] } })).total);
  }
  const classes = (await get('histogram', { q: { values: { class: ['cat'] } }, column: 'class' })).json<Named>();
  expect(classes.values.map(({ value, all, selected }) => [value, all, selected])).toEqual(
    ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'].map((name) => [name, 10, 10]),
  );
  const sharpness = (await get('histogram', { q: {}, column: 'inspect.sharpness' })).json<Counted>();
  expect(sharpness.bins.reduce((sum, { selected }) => sum + selected, 0)).toBe(60);
  expect((await get('histogram', { q: {}, column: 'key' })).json()).toMatchObject({
    message: expect.stringContaining('too many different values'),
  });
});

test('thumbnails are small, upright, and cached; those that are no longer awaited are not created', async () => {
  const answer = await get('thumbnail', { index: 0, size: 96 });
  expect([answer.status, answer.headers['content-type']]).toEqual([200, 'image/jpeg']);
  const { width, height } = await sharp(answer.body).metadata();
  expect(Math.max(width, height)).toBe(96);
  expect((await get('thumbnail', { index: 0, size: 96 })).body).toEqual(answer.body);
  expect((await get('thumbnail', { index: 0, size: 4000 })).status).toBe(400);
  expect((await get('thumbnail', { index: 60, size: 96 })).status).toBe(400);

  const gone = new AbortController();
  setMaxListeners(0, gone.signal);
  const asked = Array.from({ length: 40 }, (_, index) => server.thumbnails.get(index, 256, gone.signal));
  expect(server.thumbnails.pending).toBe(40);
  gone.abort();
  const made = (await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled');
  expect([made.length, server.thumbnails.pending]).toEqual([4, 0]);
});

test('a thumbnail is upright like the image in a loader, wherever the orientation is stored', async () => {
  const folder = emptyFolder();
  for (const [i, file] of ['xmp-6.jpg', 'raw-profile-6.png', 'exif-1-and-xmp-6.jpg'].entries())
    writeFileSync(path.join(folder, `${i}${path.extname(file)}`), readFileSync(`test/fixtures/pillow/${file}`));
  const shards = path.join(emptyFolder(), 'shards');
  await pack(folder, shards, { shuffle: false });
  const own = await serve(shards);
  const sizes: number[][] = [];
  for (let index = 0; index < 3; index++) {
    const { width, height } = await sharp((await get('thumbnail', { index, size: 96 }, own)).body).metadata();
    sizes.push([width, height]);
  }
  expect(sizes).toEqual([
    [16, 24],
    [16, 24],
    [24, 16],
  ]);
});

test('a sample is shown with fields and checksums, EXIF, offset and columns, and the image at full size', async () => {
  const odd = path.join(emptyFolder(), 'odd');
  mkdirSync(odd);
  const upright = await sharp(readFileSync('examples/photos/cat/cat_000.jpg'))
    .withExif({ IFD0: { Make: 'Camera of <b>someone</b>' } })
    .withMetadata({ orientation: 6 })
    .toBuffer();
  writeFileSync(path.join(odd, 'turned.jpg'), upright);
  const shards = path.join(emptyFolder(), 'shards');
  await pack(odd, shards, { workers: 1 });
  const own = await serve(shards);
  const index = 0;
  const detail = (await get('sample', { index }, own)).json<Record<string, unknown>>();
  expect(detail).toMatchObject({
    key: 'turned',
    orientation: 6,
    shard: '000000.tar',
    faults: [],
    objects: [],
    masks: [],
  });
  expect(detail.exif).toContainEqual(['Image.Make', 'Camera of <b>someone</b>']);
  expect(detail.fields).toContainEqual(
    expect.objectContaining({
      name: 'jpg',
      bytes: upright.length,
      isRight: true,
      crc32: expect.stringMatching(/^[0-9a-f]{8}$/),
    }),
  );
  expect((await get('picture', { index }, own)).body).toEqual(upright);
  const small = await sharp((await get('thumbnail', { index, size: 96 }, own)).body).metadata();
  const stored = await sharp(upright).metadata();
  expect(small.height > small.width).toBe(stored.width > stored.height);

  const shard = path.join(shards, '000000.tar');
  const bytes = readFileSync(shard);
  const { offset } = (detail.fields as { name: string; offset: number }[]).find(({ name }) => name === 'jpg')!;
  writeFileSync(shard, bytes.fill(0, offset, offset + upright.length));
  const damaged = await serve(shards);
  const changed = (await get('sample', { index }, damaged)).json<{ faults: string[] }>();
  expect(changed.faults[0]).toMatch(/has changed since it was packed/);
  const refused = await get('thumbnail', { index, size: 96 }, damaged);
  expect([refused.status, refused.json<{ message: string }>().message]).toEqual([
    400,
    expect.stringMatching(/image "turned" is bad/),
  ]);
});

test('a sample of Parquet that is read in place has the size of its header', async () => {
  const [converted, folder] = [path.join(emptyFolder(), 'converted'), emptyFolder()];
  await convert(photos, converted, { format: 'parquet' });
  const names = readdirSync(path.join(converted, 'data')).filter((name) => /^train-[\w-]+\.parquet$/.test(name));
  for (const name of names) cpSync(path.join(converted, 'data', name), path.join(folder, name));
  const own = await serve(folder);
  const { rows: listed } = (await get('rows', { q: {}, from: 0, count: 1 }, own)).json<Rows>();
  expect(listed[0]).toMatchObject({ width: 0 });
  expect((await get('dataset', {}, own)).json()).toMatchObject({ sizesFrom: `shardtool index ${folder}` });
  expect((await get('dataset', {}, await serve('examples/photos'))).json()).toMatchObject({
    sizesFrom: 'shardtool pack examples/photos SHARDS',
  });
  expect((await get('dataset')).json()).toMatchObject({ sizesFrom: null });
  type Size = { width: number; height: number; orientation: number };
  const [seen, packed] = [own, server].map(async (from) => (await get('sample', { index: 0 }, from)).json<Size>());
  const { width, height, orientation } = await packed!;
  expect(width).toBeGreaterThan(0);
  expect(await seen).toMatchObject({ width, height, orientation });
});

test('a mask with a black palette is shown in distinct colours, and transparent where it is 0', async () => {
  const own = await serve(maskedTar(2));
  const detail = (await get('sample', { index: 0 }, own)).json<{ masks: string[] }>();
  expect(detail.masks.toSorted()).toEqual(['mask.npy', 'seg.png']);
  const mask = (await get('mask', { index: 0, field: 'seg.png' }, own)).body;
  const { data, info } = await sharp(mask).raw().toBuffer({ resolveWithObject: true });
  expect(info).toMatchObject({ width: 40, height: 30, channels: 4 });
  const colours = new Map<string, number>();
  for (let at = 0; at < data.length; at += 4) {
    colours.set(String([...data.subarray(at, at + 4)]), (colours.get(String([...data.subarray(at, at + 4)])) ?? 0) + 1);
  }
  expect(colours.size).toBe(17);
  expect([...colours.keys()].filter((colour) => colour.endsWith(',0'))).toEqual(['0,0,0,0']);
  expect((await get('mask', { index: 0, field: 'npy' }, own)).status).toBe(400);
  // The images themselves are arrays here.
  expect((await get('thumbnail', { index: 0, size: 96 }, own)).headers['content-type']).toBe('image/jpeg');
  expect((await sharp((await get('picture', { index: 0 }, own)).body).metadata()).width).toBe(40);
});

test('boxes of a COCO dataset are found without an option, and otherwise with an annotations file', async () => {
  const { images, annotations } = cocoSet(3);
  const shards = path.join(emptyFolder(), 'shards');
  await pack(images, shards, { coco: annotations, workers: 1 });
  await using dataset = await openDataset(shards);
  const { key, fields } = await dataset.get(0);
  const stored = JSON.parse(Buffer.from(fields.json!).toString()) as { boxes: [number, number, number, number][] };
  const { objects } = (await get('sample', { index: 0 }, await serve(shards))).json<{
    objects: { box: number[] }[];
  }>();
  expect([key, objects.map(({ box }) => box)]).toEqual([key, stored.boxes.map(([x, y, w, h]) => [x, y, x + w, y + h])]);

  const centred = await serve(shards, { annotations: { boxes: { field: 'json', path: 'boxes', format: 'cxcywh' } } });
  const other = (await get('sample', { index: 0 }, centred)).json<{ objects: { box: number[] }[] }>();
  expect(other.objects.map(({ box }) => box)).toEqual(
    stored.boxes.map(([x, y, w, h]) => [x - w / 2, y - h / 2, x + w / 2, y + h / 2]),
  );
  const byColumns = {
    annotations: { boxes: { columns: ['boxes', 'boxes', 'boxes', 'boxes'], format: 'cxcywh' as const } },
  };
  const counted = (await get('sample', { index: 0 }, await serve(shards, byColumns))).json<{
    objects: { box: number[] }[];
  }>();
  const count = stored.boxes.length;
  expect(counted.objects.map(({ box }) => box)).toEqual([[count / 2, count / 2, 1.5 * count, 1.5 * count]]);
  await expect(serve(shards, { annotations: { boxes: { field: 'nothing' } } })).rejects.toThrow(
    'no sample has the field or column "nothing"',
  );
});

test('the model view has the pixels of a loader with that seed and epoch, and a wrong step is named', async () => {
  await using dataset = await openDataset(photos);
  const transform = [{ name: 'randomResizedCrop', size: 64 }, { name: 'randomHorizontalFlip' }] as const;
  const loader = dataset.loader({ transform, seed: 5, batchSize: 60, shuffle: false, workers: 1 });
  const epochs = loader[Symbol.asyncIterator]();
  const batch = (await epochs.next()).value as unknown as { images: Uint8Array; indices: Float64Array };
  // The memory belongs to the loader.
  const [images, numbers] = [batch.images.slice(), batch.indices.slice()];
  const row = 7;
  const index = numbers[row]!;
  await loader.close();
  const seen = await get('model', { index, transform: JSON.stringify(transform), seed: 5, epoch: 0 });
  const bytes = 64 * 64 * 3;
  const offBy = (one: Uint8Array) =>
    one.reduce((sum, value, i) => sum + Math.abs(value - images[row * bytes + i]!), 0) / bytes;
  const pixels = await sharp(seen.body).raw().toBuffer();
  expect(pixels.length).toBe(bytes);
  expect(offBy(pixels)).toBe(0);
  const other = await get('model', { index, transform: JSON.stringify(transform), seed: 5, epoch: 1 });
  expect(offBy(await sharp(other.body).raw().toBuffer())).toBeGreaterThan(4);
  // Normalized floats are shown with their original colours.
  const floats = [
    ...transform,
    { name: 'toDtype', dtype: 'float32' },
    { name: 'normalize', mean: [0.4, 0.5, 0.6], std: [0.2, 0.2, 0.3] },
  ];
  const shown = await sharp((await get('model', { index, transform: floats, seed: 5 })).body)
    .raw()
    .toBuffer();
  expect(offBy(shown)).toBeLessThan(2);

  for (const [wrong, said] of [
    ['[{"name":"resise","size":4}]', /resise/],
    ['train225', /train225/],
    ['[{', /transform is not JSON/],
    [[{ name: 'resize', size: -1 }], /size/],
  ] as const) {
    const refused = await get('model', { index, transform: wrong });
    expect([refused.status, refused.json<{ message: string }>().message]).toEqual([400, expect.stringMatching(said)]);
  }
});

test('annotations move in the model view as in a loader with the same annotations', async () => {
  const { images, annotations } = cocoSet(3);
  const shards = path.join(emptyFolder(), 'shards');
  await pack(images, shards, { coco: annotations, workers: 1 });
  await using dataset = await openDataset(shards);
  const transform = [
    { name: 'randomResizedCrop', size: 96, scale: [0.6, 1] },
    { name: 'randomHorizontalFlip', p: 1 },
  ];
  const loader = dataset.loader({
    ...{ transform: transform as never, seed: 5, batchSize: 3, shuffle: false, workers: 1 },
    annotations: { boxes: { field: 'json', path: 'boxes' }, labels: { field: 'json', path: 'labels' } },
  });
  const batch = (await loader[Symbol.asyncIterator]().next()).value!;
  const row = [...batch.offsets!].findIndex((from, i) => batch.offsets![i + 1]! - from === 2);
  const [index, from] = [batch.indices[row]!, batch.offsets![row]!];
  // An object that was cropped away has an empty box.
  const left = [from, from + 1]
    .map((object) => ({
      name: dataset.classes[batch.boxLabels![object]!],
      box: [...batch.boxes!.subarray(4 * object, 4 * object + 4)] as [number, number, number, number],
    }))
    .filter(({ box: [x, y, right, bottom] }) => right > x && bottom > y);
  const [corners, names] = [left.flatMap(({ box }) => box), left.map(({ name }) => name)];
  expect(left.length).toBeGreaterThan(0);
  await loader.close();
  const boxed = await serve(shards);
  type Seen = { width: number; height: number; objects: { label: string; box: number[]; polygons: number[][] }[] };
  const seen = (await get('model-objects', { index, transform, seed: 5, epoch: 0 }, boxed)).json<Seen>();
  expect([seen.width, seen.height, seen.objects.map(({ label }) => label)]).toEqual([96, 96, names]);
  for (const [i, value] of seen.objects.flatMap(({ box }) => box).entries()) expect(value).toBeCloseTo(corners[i]!, 3);
  expect(seen.objects.some(({ polygons }) => polygons.length > 0)).toBe(true);
  const corner = [
    { name: 'resize', size: [240, 320] },
    { name: 'centerCrop', size: 8 },
  ];
  const cropped = (await get('model-objects', { index, transform: corner }, boxed)).json<Seen>();
  expect(cropped).toEqual({ width: 8, height: 8, objects: [], masks: [] });
  const none = (await get('model-objects', { index: 0, transform, seed: 5 })).json<Seen>();
  expect(none).toEqual({ width: 0, height: 0, objects: [], masks: [] });
});

test('a mask moves in the model view as in a loader with the same mask', async () => {
  const file = maskedTar(4);
  await using dataset = await openDataset(file);
  const transform = [
    { name: 'randomResizedCrop', size: [20, 28], scale: [0.3, 1] },
    { name: 'randomHorizontalFlip' },
  ] as const;
  const loader = dataset.loader({
    ...{ transform, seed: 5, batchSize: 4, shuffle: false, workers: 1, image: 'npy', masks: ['seg.png'] },
  });
  const batch = (await loader[Symbol.asyncIterator]().next()).value!;
  const [masks, numbers] = [batch.masks['seg.png']!.slice(), batch.indices.slice()];
  await loader.close();
  const own = await serve(file);
  for (const [row, index] of numbers.entries()) {
    const asked = { index, transform, seed: 5, epoch: 0 };
    const found = (await get('model-objects', asked, own)).json<{ masks: string[] }>();
    expect(found).toMatchObject({ width: 28, height: 20, objects: [] });
    expect(found.masks.toSorted()).toEqual(['mask.npy', 'seg.png']);
    const { body } = await get('model-mask', { ...asked, field: 'seg.png' }, own);
    const { data, info } = await sharp(body).raw().toBuffer({ resolveWithObject: true });
    expect(info).toMatchObject({ width: 28, height: 20, channels: 4 });
    const seen = masks.subarray(row * 560, (row + 1) * 560);
    expect([...data].filter((_, i) => i % 4 === 3)).toEqual([...seen].map((value) => (value > 0 ? 255 : 0)));
    const colours = new Map<number, Set<string>>();
    for (const [pixel, value] of seen.entries()) {
      const colour = data.subarray(pixel * 4, pixel * 4 + 3).toString('hex');
      colours.set(value, (colours.get(value) ?? new Set()).add(colour));
    }
    expect([...colours.values()].every((of) => of.size === 1)).toBe(true);
    expect(new Set([...colours.values()].flatMap((of) => [...of])).size).toBe(colours.size);
  }
  expect((await get('model-mask', { index: 0, field: 'npy', transform }, own)).status).toBe(400);
});

test('marks become an overlay that every command accepts, and the next overlay is based on it', async () => {
  const shards = await packedPhotos();
  const own = await serve(shards);
  const { rows: listed } = (await get('rows', { q: {}, from: 0, count: 60 }, own)).json<Rows>();
  const of = (key: string) => listed.find((row) => row.key === key)!.index;
  await post('mark', { index: of('cat/cat_001'), mark: { kind: 'exclude' } }, own);
  await post('mark', { index: of('cat/cat_002'), mark: { kind: 'class', name: 'moon' } }, own);
  await post('mark', { index: of('cat/cat_003'), mark: { kind: 'wrong' } }, own);
  await post('mark', { index: of('cat/cat_004'), mark: { kind: 'wrong' } }, own);
  const marked = (await post('mark', { index: of('cat/cat_004'), mark: null }, own)).json<{ marks: unknown[] }>();
  expect(marked.marks.length).toBe(3);
  const { rows: again } = (await get('rows', { q: {}, from: of('cat/cat_001'), count: 1 }, own)).json<Rows>();
  expect(again[0]!.mark).toEqual({ kind: 'exclude' });

  expect((await post('overlay', { name: '../up' }, own)).status).toBe(400);
  const saved = (await post('overlay', { name: 'seen' }, own)).json();
  expect(saved).toMatchObject({ marks: [], saved: { overlay: 'seen', excluded: 1, relabelled: 1, wrong: 1 } });
  await using dataset = await openDataset(shards, { overlay: 'seen' });
  expect(dataset.size).toBe(59);
  expect(dataset.classes[(await dataset.get('cat/cat_002')).label]).toBe('moon');
  expect((await dataset.get('cat/cat_003')).columns).toEqual({ marked: 'wrong' });
  expect((await post('overlay', { name: 'next' }, own)).json()).toMatchObject({
    message: expect.stringContaining('no marks'),
  });
  await post('mark', { index: of('moon/moon_001'), mark: { kind: 'exclude' } }, own);
  await post('overlay', { name: 'next' }, own);
  expect((await readOverlay(shards, 'next')).parent?.name).toBe('seen');
});

test('marks of a read-only location become overlays on this machine, each based on the last, on top of the viewed overlay', async () => {
  const shards = await packedPhotos();
  await addOverlay(shards, { name: 'marks-1', excludeKeys: ['cat/cat_000'] });
  const remote = await faultyServer(shards);
  vi.stubEnv('SHARDTOOL_SIDECARS', path.join(emptyFolder(), 'beside'));
  try {
    const own = await serve(remote.url, { view: { overlay: 'marks-1' } });
    const { overlayName } = (await get('dataset', {}, own)).json<{ overlayName: string }>();
    expect(overlayName).toBe('marks-2');
    type Saved = { saved: { overlay: string; file: string } };
    const save = async (index: number, name: string) => {
      await post('mark', { index, mark: { kind: 'exclude' } }, own);
      return (await post('overlay', { name }, own)).json<Saved>().saved;
    };
    const first = await save(0, overlayName);
    const second = await save(1, 'more');
    expect(second.overlay).toBe(path.join(path.dirname(first.file), 'more.jsonl'));
    await using dataset = await openDataset(remote.url, { overlay: second.overlay });
    expect(dataset.size).toBe(57);
    expect(readdirSync(path.join(shards, 'overlays'))).toEqual(['marks-1.jsonl']);

    // If the view is based on one of them, the next is written next to it.
    const again = await serve(remote.url, { view: { overlay: second.overlay } });
    await post('mark', { index: 0, mark: { kind: 'exclude' } }, again);
    const third = (await post('overlay', { name: 'third' }, again)).json<Saved>().saved;
    await using less = await openDataset(remote.url, { overlay: third.overlay });
    expect(less.size).toBe(56);
  } finally {
    vi.unstubAllEnvs();
    await remote.stop();
  }
});

test('the command prints an address, Ctrl-C ends it, and unsaved marks are kept', async () => {
  const shards = await packedPhotos();
  const child = spawn(process.execPath, [bin, 'view', shards], { stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  const address = await new Promise<string>((resolve) => {
    child.stdout.on('data', (text) => {
      printed += text;
      const found = /http:\/\/127\.0\.0\.1:\d+\/[\w-]{24}\//.exec(printed);
      if (found !== null) resolve(found[0]);
    });
  });
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ index: 0, mark: { kind: 'exclude' } });
  expect((await ask(`${address}api/mark`, { method: 'POST', headers, body })).status).toBe(200);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGINT');
  expect(await ended).toBe(0);
  expect(printed).toContain(`1 unsaved mark written to the overlay ${shards}/overlays/marks-1.jsonl.`);
  await using dataset = await openDataset(shards, { overlay: 'marks-1' });
  expect(dataset.size).toBe(59);
});

test('a port that is in use, and a location without a dataset, are reported in one sentence', async () => {
  const port = await takenPort();
  const taken = await shardtool('view', photos, '--port', String(port));
  expect([taken.code, taken.stderr]).toEqual([
    1,
    expect.stringMatching(
      /Port \d+ of 127\.0\.0\.1 cannot be used: another process is using it; choose another port with --port\.\n$/,
    ),
  ]);
  expect((await shardtool('view', path.join(photos, 'nowhere'))).code).toBe(2);
});
