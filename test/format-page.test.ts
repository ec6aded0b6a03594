import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { COLUMN_TYPES } from '@shardtool/format';
import { addOverlay, openDataset, openMixture, splitDataset, subsetDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, packedPhotos, packedSmall, smallImages } from './datasets.js';
import { earlier, page, programOf } from './format-page.js';
import { pythonWith, runPython } from './python.js';

test.skipIf(pythonWith() === null)('splits and subsets are drawn and stored as docs/format.md describes', async () => {
  const shards = await packedSmall({ samples: 60, classes: 3 }, { maxShardSamples: 13 });
  await splitDataset(shards, { shares: new Map([['val', 0.3]]), byClass: true });
  await subsetDataset(shards, { name: 'half', share: 0.5 });
  await addOverlay(shards, { name: 'other', excludeKeys: ['a/0000'] });
  await using whole = await openDataset(shards);
  const index: { key: string; cls: string; shard: number; row: number }[] = [];
  for (const [shard, file] of whole.shards.entries()) {
    const { key, cls } = await file.loadParts(['key', 'cls']);
    index.push(...key.map((one, row) => ({ key: one, cls: whole.classes[cls[row]!]!, shard, row })));
  }
  const keysOf = async (overlay: string, split?: string) => {
    await using view = await openDataset(shards, { overlay, ...(split && { split }) });
    const found: string[] = [];
    for await (const { key } of view.samples()) found.push(key);
    return found;
  };
  const expected = {
    val: await keysOf('split', 'val'),
    train: await keysOf('split', 'train'),
    half: await keysOf('half'),
  };
  expect(expected.val).toHaveLength(18);
  const program = `${programOf('Overlays')}
import hashlib, json, sys
x = json.load(sys.stdin)
def lines_of(name):
    raw = open(x["folder"] + "/overlays/" + name + ".jsonl", "rb").read()
    *lines, last = raw.splitlines(keepends=True)
    assert json.loads(last) == {"sha256": hashlib.sha256(b"".join(lines)).hexdigest()}, name
    header, *changes = map(json.loads, lines)
    assert (header["overlay"], header["version"], header["parent"]) == (name, 1, None), name
    assert (header["dataset"], header["shards"]) == (x["identity"], x["shards"]), name
    return changes
def stored(changes):
    places = {(change.get("shard", change.get("keep")), row) for change in changes for row in rows_of(change["rows"])}
    return [one["key"] for one in x["index"] if (one["shard"], one["row"]) in places]
def drawn(rule):
    borders = {name: (low, high) for name, low, high in rule["borders"]}
    def is_in(one):
        low, high = borders.get(one["cls"], borders[None])
        return low <= key_hash(one["key"]) < high
    return [one["key"] for one in x["index"] if is_in(one)]
split, half, other = lines_of("split"), lines_of("half"), lines_of("other")
[exclude] = other
found = {"half": stored([line for line in half if "keep" in line])}
assert found["half"] == [one["key"] for one in x["index"] if key_hash("subset " + one["key"]) < 0.5 * 2**32]
for name in ("val", "train"):
    found[name] = stored([line for line in split if line["split"] == name and "rows" in line])
    assert found[name] == drawn(*[line["rule"] for line in split if line["split"] == name and "rule" in line])
place = next([one["shard"], one["row"]] for one in x["index"] if one["key"] == "a/0000")
assert exclude == {"exclude": place, "key": "a/0000", "was": 0}, exclude
assert rows_of("Ag==") == [1]
print(json.dumps(found))`;
  const { identity } = whole;
  expect(runPython(program, { folder: shards, index, identity, shards: whole.shards.length })).toEqual(expected);
});

test('expressions select the samples that docs/format.md describes', async () => {
  const scores = ['1', '2.5', '', '-3'];
  const folder = await smallImages({ samples: 4 });
  const names = readdirSync(path.join(folder, 'a')).sort();
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, `path,score\n${names.map((name, i) => `a/${name},${scores[i]}`).join('\n')}\n`);
  const shards = path.join(emptyFolder(), 'shards');
  await pack(folder, shards, { workers: 1, labels });
  await using dataset = await openDataset(shards);
  const scoresOf = async (where: string) => {
    await using loader = dataset.loader({ transform: 'raw', workers: 1, batchSize: 4, lastBatch: 'partial', where });
    const found: string[] = [];
    for await (const { keys } of loader) found.push(...keys);
    return found.sort().map((key) => scores[names.findIndex((name) => `a/${name}`.startsWith(`${key}.`))] || 'null');
  };
  const table = page.slice(page.indexOf('| expression | scores |')).split('\n\n')[0]!.split('\n').slice(2);
  expect(table.length).toBeGreaterThan(8);
  for (const row of table) {
    const [, expression, expected] = /^\| `(.*)` \| (.*) \|$/.exec(row)!;
    expect((await scoresOf(expression!)).join(', '), expression).toBe(expected);
  }
  expect(await scoresOf('"\u{1f600}" < "\ufb00"'), 'text is compared by UTF-16 code units').toHaveLength(4);
  for (const wrong of ['score = "1"', 'score', 'true < false', 'class = "no"', 'nothing = 1']) {
    await expect(scoresOf(wrong), wrong).rejects.toThrow(/^where, position /);
  }
});

test('an image keeps an extension that matches its kind, and otherwise its field is named by its kind', async () => {
  const [photo] = readdirSync('examples/photos/cat').filter((name) => name.endsWith('.jpg'));
  const jpeg = readFileSync(`examples/photos/cat/${photo}`);
  const bytes: Record<string, Uint8Array> = { JPEG: jpeg };
  for (const [kind, file] of Object.entries({
    PNG: 'codec/rgb.png',
    GIF: 'odd-images/animated.gif',
    TIFF: 'codec/cmyk.tif',
    WebP: 'codec/lossless.webp',
    AVIF: 'codec/rgb.avif',
    BMP: 'pillow/24.bmp',
    'PPM, PGM, PBM': 'pillow/raw.ppm',
  })) {
    bytes[kind] = readFileSync(`test/fixtures/${file}`);
  }
  const table = page.slice(page.indexOf('| kind | names |')).split('\n\n')[0]!.split('\n').slice(2);
  const namesOf = new Map(
    table.map((row) => {
      const [, kind, names] = row.split('|').map((cell) => cell.trim());
      return [kind!, Array.from(names!.matchAll(/`(\w+)`/g), ([, name]) => name!)] as const;
    }),
  );
  const folder = emptyFolder();
  const expected: Record<string, string> = {};
  for (const [kind, content] of Object.entries(bytes)) {
    for (const [of, names] of namesOf) {
      if (of === 'array of NumPy') continue;
      for (const name of names) {
        writeFileSync(path.join(folder, `${kind}-${name}.${name.toUpperCase()}`), content);
        expected[`${kind}-${name}`] = of === kind ? name : namesOf.get(kind)![0]!;
      }
    }
  }
  const shards = path.join(emptyFolder(), 'shards');
  await pack(folder, shards, { workers: 1 });
  await using dataset = await openDataset(shards);
  const found: Record<string, string> = {};
  for await (const { key, fields } of dataset.samples()) found[key] = Object.keys(fields).join(' ');
  expect(found).toEqual(expected);
});

test('label columns have the types that docs/format.md lists', () => {
  const dataset = JSON.parse(readFileSync(path.join(earlier, 'lmdb/dataset.json'), 'utf8'));
  const [, types] = /The `type` of a label column is (.*?)\.\n/s.exec(page)!;
  for (const { type } of dataset.columns) expect(types).toContain(`\`${type}\``);
  for (const type of COLUMN_TYPES) expect(types).toContain(`\`${type}\``);
});

test('the index of an LMDB has the order of the pack, and without an index samples are sorted by the bytes of their keys', async () => {
  const folder = emptyFolder();
  const photo = readFileSync('test/fixtures/codec/rgb.png');
  const names = ['b', 'a', 'ab', 'a-b', '\u{1f600}', '\ufb00', '\u00e9', 'Z', '10', '9'];
  for (const name of names) writeFileSync(path.join(folder, `${name}.png`), photo);
  const packed = async (format: 'tar' | 'lmdb') => {
    const shards = path.join(emptyFolder(), 'shards');
    await pack(folder, shards, { workers: 1, format, seed: 3 });
    return shards;
  };
  const keysIn = async (place: string) => {
    await using dataset = await openDataset(place);
    return [...(await dataset.shards[0]!.loadParts(['key'])).key];
  };
  const lmdb = await packed('lmdb');
  expect(await keysIn(lmdb)).toEqual(await keysIn(await packed('tar')));
  const alone = path.join(emptyFolder(), '000000.lmdb');
  cpSync(path.join(lmdb, '000000.lmdb'), alone, { recursive: true });
  expect(await keysIn(alone)).toEqual(
    names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))),
  );
});

test('the identity and checksum in dataset.json are computed as docs/format.md describes', () => {
  const text = readFileSync(path.join(earlier, 'tar/dataset.json'), 'utf8');
  const program = `
import hashlib, json, sys, zlib
text = json.load(sys.stdin)
said = json.loads(text)
lines = [json.dumps([s["file"], s["samples"], s["crc32"]], separators=(",", ":")) for s in said["shards"]]
crc = zlib.crc32(text.replace(said["crc32"], "0" * 8).encode())
print(json.dumps([said["identity"], said["crc32"], hashlib.sha256("\\n".join(lines).encode()).hexdigest(), f"{crc:08x}"]))`;
  const [identity, crc, identityHere, crcHere] = runPython<string[]>(program, text);
  expect([identityHere, crcHere]).toEqual([identity, crc]);
});

/** The names in the first column of the table with this heading. */
function namesOf(heading: string): string[] {
  const table = page.slice(page.indexOf(`| ${heading} | |\n`)).split('\n\n')[0]!;
  return table
    .split('\n')
    .filter((row) => row.startsWith('|'))
    .slice(2)
    .flatMap((row) => Array.from(row.split('|')[1]!.matchAll(/`(\w+)`/g), ([, name]) => name!));
}

test('the states of loaders of a dataset and of a mixture have the fields that docs/format.md lists', async () => {
  const places = ['tar', 'lmdb'].map((name) => path.join(earlier, name));
  await using dataset = await openDataset(places[0]!);
  await using mixture = await openMixture(places.map((place) => ({ dataset: place })));
  const stateOf = async (of: typeof dataset) => {
    await using loader = of.loader({ transform: 'raw', batchSize: 2, workers: 1 });
    await loader.info();
    return loader.state();
  };
  const one = await stateOf(dataset);
  const mixed = await stateOf(mixture);
  expect([one.version, mixed.version]).toEqual([1, 2]);
  expect(new Set(Object.keys(one))).toEqual(new Set(namesOf('version 1')));
  expect(new Set(Object.keys(mixed))).toEqual(new Set(namesOf('version 2')));
  const { sources } = mixed as { sources: readonly object[] };
  expect(sources.map((source) => new Set(Object.keys(source)))).toEqual(
    sources.map(() => new Set(namesOf('a dataset of `sources`'))),
  );
});

const INDEX = `
import json, sys, zlib
import pyarrow.parquet as pq
path = json.load(sys.stdin)
raw = open(path, "rb").read()
file = pq.ParquetFile(path, page_checksum_verification=True)
rows = file.read().num_rows
meta = file.metadata
columns = [meta.row_group(0).column(i) for i in range(meta.num_columns)]
notes = list(meta.metadata.items())
said = meta.metadata[b"shardtool.crc32"]
print(json.dumps({
    "rowGroups": meta.num_row_groups,
    "rows": rows,
    "compression": sorted({column.compression for column in columns}),
    "columns": [column.path_in_schema for column in columns],
    "types": {field.name: str(field.type) for field in file.schema_arrow},
    "version": json.loads(meta.metadata[b"shardtool.index"])["version"],
    "crc32": [said.decode(), f"{zlib.crc32(raw.replace(said, b'0' * 8)):08x}"],
}))`;

test.skipIf(pythonWith('pyarrow') === null)(
  'pyarrow reads an index as the Parquet file that docs/format.md describes',
  async () => {
    const shards = await packedPhotos();
    const index = runPython<Record<string, unknown>>(INDEX, path.join(shards, '000000.parquet'));
    const { crc32, compression, columns, types, ...rest } = index as {
      crc32: string[];
      compression: string[];
      columns: string[];
      types: Record<string, string>;
    };
    expect(rest).toEqual({ rowGroups: 1, rows: 10, version: 1 });
    expect(crc32[0]).toBe(crc32[1]);
    expect(['SNAPPY', 'UNCOMPRESSED']).toEqual(expect.arrayContaining(compression));
    const named = ['key', 'source', 'offset', 'bytes', 'width', 'height', 'orientation', 'cls'];
    expect(columns).toEqual(expect.arrayContaining([...named, 'jpg.offset', 'jpg.bytes', 'jpg.crc32']));
    expect(types).toMatchObject({
      offset: 'int64',
      'jpg.offset': 'int64',
      'jpg.crc32': 'uint32',
      width: 'int32',
      cls: 'int32',
    });
  },
);
