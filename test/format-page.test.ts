import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { COLUMN_TYPES } from '@shardtool/format';
import {
  addOverlay,
  type LoaderOptions,
  openDataset,
  openMixture,
  splitDataset,
  subsetDataset,
} from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planEpoch } from '#reader/epoch-order';
import { planMixture } from '#reader/plan-mixture';
import { emptyFolder, packedPhotos, packedSmall, smallImages } from './datasets.js';
import { pythonWith, runPython } from './python.js';
import { TIMES } from './repetitions.js';

const page = readFileSync('docs/format.md', 'utf8');

/** The programs below headings of the page, as one. */
function programOf(...headings: string[]): string {
  return headings
    .map((heading) => {
      const section = page.split(/^(?=##+ )/m).find((part) => part.replace(/^##+ /, '').startsWith(`${heading}\n`))!;
      return Array.from(section.matchAll(/```python\n(.*?)```/gs), ([, code]) => code!).join('\n');
    })
    .join('\n');
}

const ORDER = programOf('Order of an epoch', 'Parts of a dataset, other epochs, other orders', 'Order of a mixture');
/** Prints what an expression of Python is for each input, as \`x\`. */
const forEach = (program: string, expression: string) =>
  `${program}\nimport json, sys\nprint(json.dumps([${expression} for x in json.load(sys.stdin)]))`;

const earlier = 'test/fixtures/earlier';

interface Run {
  readonly dataset: string;
  readonly options: { readonly worldSize?: number };
  /** As version 1 wrote it. */
  readonly state: {
    readonly seed: number;
    readonly epoch: number;
    readonly streams: number;
    readonly blockSamples: number;
    readonly unit: string;
    readonly shuffle: boolean;
    readonly selection: string;
    readonly epochSamples: number | null;
    readonly position: number;
  };
  readonly rest: readonly string[];
}
const runs: Run[] = JSON.parse(readFileSync(path.join(earlier, 'states.json'), 'utf8')).filter(
  ({ dataset, state, options }: Run) =>
    dataset !== 'foreign' &&
    state.shuffle &&
    state.selection === '' &&
    state.epochSamples === null &&
    options.worldSize === undefined,
);

test.skipIf(pythonWith() === null)(
  'the order in docs/format.md is the one that loaders go on with, epoch by epoch',
  async () => {
    expect(new Set(runs.map(({ state }) => state.unit))).toEqual(new Set(['sample', 'shard', 'chunk']));
    for (const { dataset: name, state, rest } of runs) {
      await using dataset = await openDataset(path.join(earlier, name));
      const counts = dataset.shards.map(({ samples }) => samples);
      const keys: string[] = [];
      for await (const { key } of dataset.samples()) keys.push(key);
      const rows = rest.map((row) => row.split(' '));
      for (const epoch of new Set(rows.map(([of]) => Number(of)))) {
        const input = [counts, state.seed, epoch, state.streams, state.blockSamples, state.unit];
        const [numbers] = runPython<number[][]>(forEach(ORDER, 'order(*x)'), [input]);
        const order = numbers!.map((number) => keys[number]);
        const there = rows.filter(([of]) => Number(of) === epoch).map(([, key]) => key);
        expect(order.slice(epoch === state.epoch ? state.position : 0), `${name}, epoch ${epoch}`).toEqual(there);
      }
    }
  },
);

interface MixtureState {
  readonly seed: number;
  readonly epoch: number;
  readonly group: number;
  readonly window: number;
  readonly sources: readonly { readonly base: number | null }[];
}

test.skipIf(pythonWith() === null)(
  'the order of a mixture in docs/format.md is the one that loaders have, over epochs, and behind a change of weights',
  async () => {
    const places = ['tar', 'lmdb', 'msgpack'].map((name) => path.join(earlier, name));
    await using mixture = await openMixture(
      places.map((dataset, i) => ({ dataset, name: String(i), weight: [0.5, 0.3, 0.2][i] })),
      { end: 'last', group: 7, window: 3 },
    );
    const options = { transform: 'raw', batchSize: 6, seed: 2 ** 40 + 3, workers: 1, lastBatch: 'partial' } as const;
    const counts = mixture.mixture!.datasets.map(({ dataset }) => dataset.shards.map(({ samples }) => samples));
    await using first = mixture.loader(options);
    await first.info();
    const weighed = await first.withWeights(first.state(), [1, 1, 4]);
    for (const state of [undefined, weighed]) {
      await using loader = mixture.loader({ ...options, ...(state && { state }) });
      for (let epoch = 0; epoch < 3; epoch++) {
        const seen: [number, number][] = [];
        let now: MixtureState | undefined;
        for await (const { source, numbers } of loader) {
          for (const [row, number] of numbers.entries()) seen.push([source![row]!, number]);
          now = loader.state() as unknown as MixtureState;
        }
        const { sources, seed, group, window } = now!;
        expect(now!.epoch).toBe(epoch);
        expect(sources.map(({ base }) => base === null)).toEqual(sources.map(() => state === undefined));
        const input = [counts, sources, seed, epoch, group, window];
        expect([seen]).toEqual(runPython(forEach(ORDER, 'mixture(*x)'), [input]));
      }
    }
  },
);

const anySeed = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 42, 2 ** 40 + 7));
const anyUnit = fc.constantFrom('sample' as const, 'shard' as const, 'chunk' as const, undefined);
/** Samples of shards, some of which have none. */
const anyCounts = fc
  .array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 })), { minLength: 1, maxLength: 12 })
  .filter((counts) => counts.some((count) => count > 0));

test.skipIf(pythonWith() === null)(
  'the programs in docs/format.md give the order of any epoch, with shards that have no samples',
  () => {
    const orders = fc.record({
      counts: anyCounts,
      seed: anySeed,
      epoch: fc.constantFrom(0, 1, 7, 2 ** 31 + 5),
      streams: fc.integer({ min: 1, max: 6 }),
      blockSamples: fc.integer({ min: 1, max: 9 }),
      unit: anyUnit,
      shuffle: fc.boolean(),
      epochSamples: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    });
    // Of short epochs far out, the pass would be beyond 2^32.
    const cases = fc
      .sample(orders, 300 * TIMES)
      .map((one) => (one.epochSamples ? { ...one, epoch: one.epoch % 100 } : one));
    expect(cases.some(({ counts, unit }) => unit === 'shard' && counts.includes(0))).toBe(true);
    const planned = cases.map((one) => {
      const plan = planEpoch({ ...one, globalBatch: 1 });
      return { unit: plan.unit, order: Array.from({ length: plan.samples }, (_, p) => plan.at(p).number) };
    });
    const program = `${ORDER}
shuffle_values = shuffle
def planned(case):
    global shuffle
    shuffle = shuffle_values if case["shuffle"] else lambda *_: None
    counts, streams, block = case["counts"], case["streams"], case["blockSamples"]
    unit = case.get("unit") or default_unit(counts, streams, block)
    def one_pass(k):
        return order(counts, case["seed"], k, streams, block, unit)
    epoch, wanted = case["epoch"], case.get("epochSamples")
    return {"unit": unit, "order": stretch(one_pass, sum(counts), epoch, wanted) if wanted else one_pass(epoch)}`;
    expect(runPython(forEach(program, 'planned(x)'), cases)).toEqual(planned);
  },
);

test.skipIf(pythonWith() === null)(
  'the programs in docs/format.md give the samples that loaders deliver: selected, weighted, in epochs of any length, in a custom order',
  async () => {
    const samples = 40;
    await using dataset = await openDataset(await packedSmall({ samples, classes: 2 }, { maxShardSamples: 6 }));
    const keys: string[] = [];
    for await (const { key } of dataset.samples()) keys.push(key);
    const shards = dataset.shards.map((shard) => shard.samples);
    const anyNumber = fc.integer({ min: 0, max: samples - 1 });
    const runs = fc.record({
      seed: anySeed,
      epoch: fc.integer({ min: 0, max: 9 }),
      streams: fc.integer({ min: 1, max: 5 }),
      blockSamples: fc.integer({ min: 1, max: 7 }),
      shuffleUnit: anyUnit,
      selected: fc.option(fc.uniqueArray(anyNumber, { minLength: 2, maxLength: 14 }), { nil: undefined }),
      weights: fc.option(fc.array(fc.constantFrom(0, 0.25, 1, 1.5, 2), { minLength: samples, maxLength: samples }), {
        nil: undefined,
      }),
      order: fc.option(fc.array(anyNumber, { minLength: 1, maxLength: 50 }), { nil: undefined }),
      epochSamples: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    });
    const cases: object[] = [];
    const delivered: number[][] = [];
    for (const run of fc.sample(runs, 40 * TIMES)) {
      const { selected, weights, order, epochSamples, ...others } = run;
      const kind = order !== undefined ? { order } : { keys: selected?.map((number) => keys[number]!), weights };
      const { shuffleUnit, ...withoutUnit } = others;
      const options: LoaderOptions = {
        ...(order === undefined ? others : withoutUnit),
        ...kind,
        ...((order !== undefined || weights === undefined) && { epochSamples }),
        ...{ transform: 'raw', batchSize: 7, workers: 1, lastBatch: 'partial', fields: [] },
      };
      await using loader = dataset.loader(options);
      const found: number[] = [];
      try {
        for await (const { numbers } of loader) found.push(...numbers);
      } catch (error) {
        // Weights that select nothing, or that draw nothing in this pass.
        expect((error as Error).message).toMatch(/No sample is selected|Epoch \d+ has 0 samples/);
        continue;
      }
      delivered.push(found);
      const { unit, streams, blockSamples } = loader.state() as Run['state'];
      cases.push({ ...options, shards, selected, unit, streams, blockSamples });
    }
    expect(delivered.length).toBeGreaterThan(30);
    const program = `${ORDER}
def delivered(case):
    shards, selected = case["shards"], case.get("selected")
    custom = case.get("order")
    chosen = set(range(sum(shards)) if selected is None else selected)
    weights = [w if n in chosen else 0 for n, w in enumerate(case.get("weights") or [1] * sum(shards))]
    def one_pass(k):
        if custom is not None:
            return custom
        return weighted(shards, weights, case["seed"], k, case["streams"], case["blockSamples"], case["unit"])
    wanted = case.get("epochSamples")
    return stretch(one_pass, len(one_pass(0)), case["epoch"], wanted) if wanted else one_pass(case["epoch"])`;
    expect(runPython(forEach(program, 'delivered(x)'), cases)).toEqual(delivered);
  },
);

test.skipIf(pythonWith() === null)(
  'the program of a mixture in docs/format.md gives its order for any datasets, with shards that have no samples',
  () => {
    const mixtures = fc.record({
      sources: fc.array(
        fc.record({
          counts: anyCounts,
          streams: fc.constantFrom(2, 4, 6),
          blockSamples: fc.integer({ min: 1, max: 7 }),
          unit: anyUnit.map((unit) => unit ?? 'shard'),
          samples: fc.integer({ min: 0, max: 40 }),
          base: fc.option(fc.integer({ min: 0, max: 90 }), { nil: null }),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      seed: anySeed,
      epoch: fc.integer({ min: 0, max: 5 }),
      group: fc.constantFrom(1, 2),
      window: fc.integer({ min: 1, max: 6 }),
    });
    const cases = fc.sample(mixtures, 100 * TIMES).map(({ sources, ...rest }) => ({
      ...rest,
      // A state has the places of all datasets, or of none.
      sources: sources.map((source) => ({ ...source, base: sources[0]!.base === null ? null : (source.base ?? 0) })),
    }));
    const planned = cases.map(({ sources, ...rest }) => {
      const plan = planMixture({
        ...rest,
        sources,
        samples: sources.map(({ samples }) => samples),
        ...(sources[0]!.base !== null && { base: sources.map(({ base }) => base!) }),
        globalBatch: 2,
      });
      return Array.from({ length: plan.samples }, (_, p) => {
        const { source, number } = plan.at(p);
        return [source, number];
      });
    });
    const call =
      'mixture([s["counts"] for s in x["sources"]], x["sources"], x["seed"], x["epoch"], x["group"], x["window"])';
    expect(runPython(forEach(ORDER, call), cases)).toEqual(planned);
  },
);

test.skipIf(pythonWith() === null)('splits and subsets are drawn and stored as docs/format.md says', async () => {
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

test('expressions select the samples that docs/format.md says', async () => {
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
    await expect(scoresOf(wrong), wrong).rejects.toThrow(/^where: /);
  }
});

test('an image keeps an extension that belongs to its kind, and its field has the name of its kind otherwise', async () => {
  const [photo] = readdirSync('examples/photos/cat').filter((name) => name.endsWith('.jpg'));
  const jpeg = readFileSync(`examples/photos/cat/${photo}`);
  const bytes: Record<string, Uint8Array> = { JPEG: jpeg };
  for (const [kind, file] of Object.entries({
    PNG: 'codec/rgb.png',
    GIF: 'odd-images/animated.gif',
    TIFF: 'codec/cmyk.tif',
    WebP: 'codec/lossless.webp',
    AVIF: 'codec/rgb.avif',
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

test('label columns have the types that docs/format.md names', () => {
  const dataset = JSON.parse(readFileSync(path.join(earlier, 'lmdb/dataset.json'), 'utf8'));
  const [, types] = /The `type` of a label column is (.*?)\.\n/s.exec(page)!;
  for (const { type } of dataset.columns) expect(types).toContain(`\`${type}\``);
  for (const type of COLUMN_TYPES) expect(types).toContain(`\`${type}\``);
});

test('the index of an LMDB has the order of the pack, and without one samples come by the bytes of their keys', async () => {
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

test("dataset.json's identity and checksum are what docs/format.md says", () => {
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

test('the states of loaders of a dataset and of a mixture have the fields that docs/format.md names', async () => {
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
  'an index is the Parquet file that docs/format.md says, by pyarrow',
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
