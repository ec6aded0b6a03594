import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { pythonWith, runPython } from './python.js';

const page = readFileSync('docs/format.md', 'utf8');
const program = /```python\n(.*?)```/s.exec(page)![1]!;
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
