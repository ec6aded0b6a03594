import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset, openMixture } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedPhotos } from './datasets.js';
import { pythonWith, runPython } from './python.js';

const page = readFileSync('docs/format.md', 'utf8');
/** The program of the order, and that of a mixture's behind it. */
const [program, program2] = Array.from(page.matchAll(/```python\n(.*?)```/gs), ([, code]) => code!);
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
        const run = `${program}\nimport json, sys\nprint(json.dumps(order(*json.load(sys.stdin))))`;
        const order = runPython<number[]>(run, input).map((number) => keys[number]);
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
    const run = `${program}${program2}\nimport json, sys\nprint(json.dumps(mixture(*json.load(sys.stdin))))`;
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
        expect(seen).toEqual(runPython(run, [counts, sources, seed, epoch, group, window]));
      }
    }
  },
);

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
