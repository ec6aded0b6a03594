import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { addOverlay, openDataset, type SplitOptions, splitDataset } from '@shardtool/reader';
import {
  collectGarbage,
  compactDataset,
  eraseSamples,
  listVersions,
  openPackedLabels,
  type PackOptions,
  pack,
  restoreVersion,
  verify,
} from '@shardtool/writer';
import { expect } from 'vitest';
import type { BucketServer } from './bucket-server.js';
import { bin } from './cli-process.js';
import { emptyFolder } from './datasets.js';
import { filesIn, jpeg, newFolder } from './pack-workbench.js';
import { randomOf, SEED } from './random.js';

/** Files of other programs, which no change may remove. */
const FOREIGN = [
  'versions/notes.txt',
  'versions/log/notes.md',
  'versions/pending/left.bak',
  'erased/notes.txt',
  'mine.bin',
];

/** The dataset of a case as seen from outside. */
export interface Place {
  readonly output: string;
  readonly names: () => string[];
  readonly bytesOf: (name: string) => Buffer;
  readonly put: (name: string, text: string) => void;
  /** Runs a change, sometimes with an injected failure, and again if it failed. */
  readonly disturbed: <T>(change: () => Promise<T>, random: () => number) => Promise<T>;
  /** Runs a command in a separate process, and kills it at one of its requests. Absent for a folder. */
  readonly killed?: (args: readonly string[], random: () => number) => Promise<void>;
}

/** A sample: image, class and score. */
type Sample = readonly [image: string, cls: string, score: number | null];

/** An overlay as the model knows it, on top of another one. */
interface ModelOverlay {
  readonly parent: string | null;
  readonly excluded: Set<string>;
  /** Classes and scores that differed from those below when the overlay was made. */
  readonly labels: Map<string, { readonly cls?: string; readonly score?: number | null }>;
}

/** A split as the model knows it: the sides of the samples that it has had since it was drawn. */
interface ModelSplit {
  readonly options: Omit<SplitOptions, 'name'>;
  sides: Map<string, string>;
}

/** A dataset as plain maps, with the rules of docs/living-datasets.md. */
class Model {
  readonly source = new Map<string, Sample>();
  current = new Map<string, Sample>();
  /** Every version that was current, the newest last, and what the kept ones contain. */
  history: string[] = [];
  readonly kept = new Map<string, ReadonlyMap<string, Sample>>();
  readonly erased = new Set<string>();
  readonly overlays = new Map<string, ModelOverlay>();
  readonly splits = new Map<string, ModelSplit>();

  committed(version: string): void {
    if (this.history.at(-1) !== version) this.history.push(version);
    this.kept.set(version, new Map(this.current));
    for (const { excluded, labels } of this.overlays.values()) {
      for (const keys of [excluded, labels]) {
        for (const key of keys.keys()) if (!this.current.has(key)) keys.delete(key);
      }
    }
  }

  /** The samples with this overlay, and those below it. */
  seenWith(name: string | null): Map<string, Sample> {
    if (name === null) return new Map(this.current);
    const { parent, excluded, labels } = this.overlays.get(name)!;
    const seen = this.seenWith(parent);
    for (const key of excluded) seen.delete(key);
    for (const [key, { cls, score }] of labels) {
      const sample = seen.get(key);
      if (sample !== undefined) seen.set(key, [sample[0], cls ?? sample[1], score === undefined ? sample[2] : score]);
    }
    return seen;
  }
}

async function contents(location: string, options: { version?: string; overlay?: string; split?: string } = {}) {
  await using dataset = await openDataset(location, options);
  const found = new Map<string, unknown[]>();
  for await (const { key, fields, label } of dataset.samples({ checksum: true })) {
    found.set(key, [Buffer.from(fields.jpg!).toString('base64'), dataset.classes[label]]);
  }
  for (const shard of dataset.shards) {
    const { key, columns } = await shard.loadParts(['key', 'columns']);
    for (const [row, one] of key.entries()) found.get(one)!.push(columns.get('score')![row]);
  }
  const classes = [...found.values()].map(([, cls]) => cls);
  expect(dataset.classSamples).toEqual(dataset.classes.map((name) => classes.filter((cls) => cls === name).length));
  return found;
}

/** The side of each sample of a split, which is drawn again if the dataset has grown. */
async function sidesOf(location: string, name: string, { options }: ModelSplit) {
  const sides = new Map<string, string>();
  const samples = new Map<string, unknown>();
  for (const split of ['val', 'train']) {
    const view = { overlay: name, split };
    const found = await contents(location, view).catch(async (error) => {
      if (!/has grown since the split/.test(error.message)) throw error;
      await splitDataset(location, { ...options, name });
      return contents(location, view);
    });
    for (const [key, sample] of found) {
      expect(sides.get(key)).toBeUndefined();
      sides.set(key, split);
      samples.set(key, sample);
    }
  }
  return { sides, samples };
}

const sorted = (samples: ReadonlyMap<string, unknown>) => [...samples].sort(([a], [b]) => (a < b ? -1 : 1));

/** Changes a dataset `steps` times, and compares it with the model after each change. */
export async function playChanges(seed: number, steps: number, place: Place): Promise<void> {
  const { output, names, bytesOf, put, disturbed } = place;
  const random = randomOf(`living ${seed}`);
  const below = (count: number) => Math.floor(random() * count);
  const pick = <T>(list: readonly T[]) => list[below(list.length)]!;
  const model = new Model();
  const source = emptyFolder();
  const log: string[] = [];
  let made = 0;
  const add = (count: number) => {
    for (let i = 0; i < count; i++) {
      const key = `${pick(['ant', 'bee', 'cat'])}/${String(made).padStart(3, '0')}`;
      mkdirSync(path.dirname(path.join(source, key)), { recursive: true });
      putSample(key, key.split('/')[0]!, made / 2);
    }
    writeLabels();
  };
  const putSample = (key: string, cls: string, score: number | null) => {
    writeFileSync(path.join(source, `${key}.jpg`), jpeg(made));
    model.source.set(key, [Buffer.from(jpeg(made)).toString('base64'), cls, score]);
    made++;
  };
  const writeLabels = () => {
    const rows = [...model.source].map(([key, [, cls, score]]) => `${key}.jpg,${cls},${score!.toFixed(1)}`);
    writeFileSync(path.join(source, 'labels.csv'), `path,class,score\n${rows.join('\n')}\n`);
  };
  const packOptions: PackOptions = {
    labels: path.join(source, 'labels.csv'),
    classes: ['ant', 'bee', 'cat'],
    workers: 1,
  };
  const append = async (more: object) => {
    await disturbed(() => pack(source, output, { ...packOptions, append: true, ...more }), random);
    appended();
  };
  const appended = () => {
    for (const [key, sample] of model.source)
      if (!model.erased.has(key) && !model.current.has(key)) model.current.set(key, sample);
  };
  const applied = () => {
    for (const [key, sample] of [...model.current]) {
      const now = model.source.get(key);
      if (now === undefined) model.current.delete(key);
      else if (String(now) !== String(sample) && model.erased.has(key)) model.current.delete(key);
      else model.current.set(key, now);
    }
    appended();
  };
  const someOverlay = () => (random() < 0.5 ? null : ([...model.overlays.keys()].at(-1) ?? null));
  const isLeft = () => [...model.current.keys()].some((key) => model.source.has(key) && !model.erased.has(key));
  const kill = async (...args: readonly string[]) => {
    if (random() < 0.5) await place.killed?.(args, random);
  };
  const changes: Record<string, () => Promise<void>> = {
    async append() {
      add(1 + below(3));
      await kill('pack', source, output, '--append', '--labels', path.join(source, 'labels.csv'));
      await append({ restart: random() < 0.3 });
    },
    async twoWriters() {
      add(1 + below(2));
      const writers = place.killed === undefined ? 1 : 2;
      const ended = await Promise.allSettled(
        Array.from({ length: writers }, () =>
          pack(source, output, { ...packOptions, append: true, ...(writers > 1 && { staging: emptyFolder() }) }),
        ),
      );
      log.push(`  ${ended.map(({ status }) => status)}`);
      if (ended.some(({ status }) => status === 'rejected')) await append({ restart: true });
      else appended();
    },
    async sourceChanges() {
      const present = [...model.source.keys()];
      for (const key of present) {
        const what = random();
        const [image, cls, score] = model.source.get(key)!;
        if (what < 0.15) putSample(key, cls, score);
        else if (what < 0.3) model.source.set(key, [image, pick(['ant', 'bee', 'cat']), score! + 0.5]);
        else if (what < 0.4) {
          rmSync(path.join(source, `${key}.jpg`));
          model.source.delete(key);
        }
      }
      if (model.source.size === 0) add(1);
      writeLabels();
      if (random() < 0.4) return append({});
      add(below(2));
      if (!isLeft()) return;
      log.push('  applied');
      const labels = path.join(source, 'labels.csv');
      await kill('pack', source, output, '--append', '--apply-changes', '--compare', 'checksum', '--labels', labels);
      const options = { ...packOptions, append: true, applyChanges: true, compare: 'checksum' } as const;
      await disturbed(() => pack(source, output, { ...options, restart: true }), random);
      applied();
    },
    async compact() {
      await kill('compact', output, '--max-shard-samples', '6');
      const { shards } = await disturbed(() => compactDataset(output, { maxShardSamples: 6 }), random);
      expect((await readManifest(output)).shards).toHaveLength(shards);
    },
    async nothingNew() {
      await append({});
    },
    async erase() {
      const keys = [...new Set([pick([...model.current.keys()]), pick([...model.source.keys()]), 'unknown'])];
      if ([...model.current.keys()].every((key) => keys.includes(key))) return;
      log.push(`  ${keys}`);
      const list = path.join(emptyFolder(), 'keys.txt');
      writeFileSync(list, `${keys.join('\n')}\n`);
      await kill('erase', output, '--keys', list);
      const report = await disturbed(() => eraseSamples(output, { keys, verify: true }), random);
      for (const key of keys) {
        model.current.delete(key);
        model.erased.add(key);
      }
      expect((await readManifest(output)).samples).toBe(model.current.size);
      const holders = [...model.kept]
        .filter(([, samples]) => keys.some((key) => samples.has(key)))
        .map(([version]) => version);
      expect([...report.heldBy].sort()).toEqual(holders.sort());
    },
    async restore() {
      const version = pick([...model.kept.keys()]);
      await disturbed(() => restoreVersion(output, version), random);
      model.current = new Map(model.kept.get(version));
    },
    async gc() {
      const keep = 1 + below(4);
      log.push(`  ${keep}`);
      await disturbed(() => collectGarbage(output, { keep }), random);
      model.history = model.history.slice(-keep);
      for (const version of model.kept.keys()) if (!model.history.includes(version)) model.kept.delete(version);
    },
    async overlay() {
      const parent = someOverlay();
      const excluded = [...model.seenWith(parent).keys()].filter(() => random() < 0.3);
      if (excluded.length === 0) return;
      const name = `o${model.overlays.size}`;
      await addOverlay(output, { name, parent: parent ?? undefined, excludeKeys: excluded });
      model.overlays.set(name, { parent, excluded: new Set(excluded), labels: new Map() });
    },
    async split() {
      const parent = someOverlay() ?? undefined;
      const name = `s${model.splits.size}`;
      const kind = random();
      const options = {
        shares: new Map([['val', pick([0.2, 0.5])]]),
        parent,
        ...(kind < 0.4 && { byClass: true }),
        ...(kind > 0.8 && { group: 'score' }),
      };
      await splitDataset(output, { ...options, name });
      log.push(`  ${name} on ${parent} ${kind}`);
      model.splits.set(name, { options, sides: new Map() });
    },
    /** Other classes and scores, as a line per sample or packed. */
    async relabel() {
      const parent = someOverlay();
      const share = pick([0.3, 1]);
      const below = [...model.seenWith(parent)].filter(() => random() < share);
      const rows = below.map(([key]) => ({
        key,
        class: pick(['ant', 'bee', 'cat']),
        score: random() < 0.2 ? null : Math.floor(random() * 9),
      }));
      const labels: ModelOverlay['labels'] = new Map();
      below.forEach(([key, [, cls, score]], i) => {
        const row = rows[i]!;
        labels.set(key, {
          ...(row.class !== cls && { cls: row.class }),
          ...(row.score !== score && { score: row.score }),
        });
      });
      if ([...labels.values()].every((changes) => Object.keys(changes).length === 0)) return;
      const file = path.join(emptyFolder(), 'labels.jsonl');
      writeFileSync(file, rows.map((row) => JSON.stringify(row)).join('\n'));
      const opened = await openPackedLabels(file, random() < 0.6 ? { heldBytes: 0 } : {});
      const name = `o${model.overlays.size}`;
      await addOverlay(output, { name, parent: parent ?? undefined, labels: opened });
      model.overlays.set(name, { parent, excluded: new Set(), labels });
    },
  };
  add(4);
  await pack(source, output, { ...packOptions, maxShardSamples: 2, index: ['wids'] });
  model.current = new Map(model.source);
  model.committed((await readManifest(output)).identity);
  for (const name of FOREIGN) put(name, 'cat/000 of another program');
  await using open = await openDataset(output);
  const opened = new Map(model.current);
  const openVersion = model.history[0]!;
  try {
    for (let step = 0; step < steps; step++) {
      const name = step === 0 ? 'append' : pick(Object.keys(changes));
      log.push(name);
      await changes[name]!();
      const { identity } = await readManifest(output);
      model.committed(identity);
      expect(sorted(await contents(output))).toEqual(sorted(model.current));
      for (const [version, samples] of model.kept) {
        expect(sorted(await contents(output, { version }))).toEqual(sorted(samples));
      }
      const chain = await listVersions(output);
      expect(chain.slice(0, model.history.length).map(({ version }) => version)).toEqual([...model.history].reverse());
      for (const { version, isKept } of chain) expect([version, isKept]).toEqual([version, model.kept.has(version)]);
      for (const overlay of model.overlays.keys()) {
        expect([overlay, sorted(await contents(output, { overlay }))]).toEqual([
          overlay,
          sorted(model.seenWith(overlay)),
        ]);
      }
      for (const [name, split] of model.splits) {
        const { sides, samples } = await sidesOf(output, name, split);
        expect([name, sorted(samples)]).toEqual([name, sorted(model.seenWith(split.options.parent ?? null))]);
        const before = [...split.sides].filter(([key]) => sides.has(key));
        expect([name, before.map(([key]) => [key, sides.get(key)])]).toEqual([name, before]);
        split.sides = sides;
      }
      if (model.kept.has(openVersion)) {
        const key = pick([...opened.keys()]);
        expect(Buffer.from((await open.get(key)).fields.jpg!).toString('base64')).toBe(opened.get(key)![0]);
      }
      expect(names()).toEqual(expect.arrayContaining(FOREIGN));
      expect((await verify(output)).faults).toBe(0);
      if (name === 'erase') {
        const texts = names().filter((file) => /jsonl?$/.test(file) && !/^(?:versions|erased)\//.test(file));
        const leaks = texts.filter((file) =>
          [...model.erased].some((key) => !model.current.has(key) && bytesOf(file).includes(key)),
        );
        expect(leaks).toEqual([]);
      }
    }
  } catch (error) {
    throw new Error(`With SHARDTOOL_SEED=${SEED}, case ${seed}, after ${log.join('; ')}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

export function folderPlace(): Place {
  const output = newFolder();
  return {
    output,
    names: () => filesIn(output),
    bytesOf: (name) => readFileSync(path.join(output, name)),
    put(name, text) {
      mkdirSync(path.dirname(path.join(output, name)), { recursive: true });
      writeFileSync(path.join(output, name), text);
    },
    disturbed: (change) => change(),
  };
}

export function bucketPlace(server: BucketServer): Place {
  const prefix = 'living/shards/';
  server.objects.clear();
  return {
    output: 's3://living/shards',
    names: () => server.names('living').map((name) => name.slice('shards/'.length)),
    bytesOf: (name) => server.objects.get(prefix + name)!.bytes,
    put: (name, text) => server.put(prefix + name, text),
    async killed(args, random) {
      const at = Math.floor(random() * 60);
      let asked = 0;
      const child = spawn(process.execPath, [bin, ...args], { stdio: 'ignore' });
      server.fault = () => {
        if (asked++ === at) child.kill('SIGKILL');
        return undefined;
      };
      await new Promise((resolve) => child.once('close', resolve));
      server.fault = () => undefined;
    },
    async disturbed(change, random) {
      const [kind, at] = [random(), Math.floor(random() * 120)];
      let asked = 0;
      server.fault = () => {
        const number = asked++;
        if (kind < 0.3) return number >= at ? { status: 403, code: 'AccessDenied' } : undefined;
        if (number !== at || kind > 0.7) return undefined;
        return kind < 0.5 ? 'lost' : { status: 503, code: 'SlowDown' };
      };
      try {
        return await change();
      } catch (error) {
        if (kind >= 0.3) throw error;
        server.fault = () => undefined;
        return await change();
      } finally {
        server.fault = () => undefined;
      }
    },
  };
}
