import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from '../bucket-server.js';
import { bin } from '../cli-process.js';
import { emptyFolder } from '../datasets.js';
import { jpeg, PNG } from '../pack-workbench.js';
import { randomOf, SEED } from '../random.js';
import { TIMES } from '../repetitions.js';

const random = randomOf('attacks on living datasets');
const below = (count: number) => Math.floor(random() * count);

let server: BucketServer;
beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());

/** Reads a file of a dataset; null if there is none. */
type Read = (name: string) => Buffer | null;

/**
 * The files of all samples, as `KEY.FIELD`, read from the tars that a dataset.json names. It shares no code with shardtool. Throws if
 * a shard is missing or its crc32 differs from that in dataset.json.
 */
function contentsOf(read: Read, manifest = 'dataset.json'): Map<string, string> {
  const { shards, samples } = JSON.parse(read(manifest)!.toString());
  const found = new Map<string, string>();
  const keys = new Set<string>();
  for (const { file, crc32: sum } of shards) {
    const tar = read(file);
    if (tar === null) throw new Error(`${manifest} names ${file}, which is missing`);
    if (crc32(tar).toString(16).padStart(8, '0') !== sum)
      throw new Error(`${file} does not have the checksum in ${manifest}`);
    for (const [name, bytes] of tarFiles(tar)) {
      if (found.has(name)) throw new Error(`${name} exists twice`);
      found.set(name, bytes.toString('base64'));
      keys.add(name.slice(0, name.indexOf('.', name.lastIndexOf('/'))));
    }
  }
  if (keys.size !== samples) throw new Error(`there are ${keys.size} samples, but dataset.json has ${samples}`);
  return found;
}

/** The files of a tar with short names: POSIX.1-1988, "ustar Interchange Format". */
function* tarFiles(tar: Buffer): Generator<[string, Buffer]> {
  for (let at = 0; tar[at] !== 0 && at < tar.length; ) {
    const text = (from: number, length: number) =>
      tar.toString('latin1', at + from, at + from + length).replace(/\0.*$/s, '');
    const size = Number.parseInt(text(124, 12), 8);
    yield [text(0, 100), tar.subarray(at + 512, at + 512 + size)];
    at += 512 + Math.ceil(size / 512) * 512;
  }
}

/** A source of images with masks, whose contents the dataset should have. */
class Source {
  readonly folder = emptyFolder();
  readonly files = new Map<string, Buffer>();
  #made = 0;

  add(count: number): void {
    for (let i = 0; i < count; i++) {
      const key = `${['ant', 'bee'][below(2)]}/${String(this.#made).padStart(3, '0')}`;
      this.put(`${key}.jpg`, jpeg(this.#made++));
      if (random() < 0.5) this.put(`${key}.seg.png`, this.#mask());
    }
  }

  /** Changes, adds and removes images and masks. */
  change(): void {
    for (const name of [...this.files.keys()].filter((file) => file.endsWith('.jpg'))) {
      const mask = name.replace('.jpg', '.seg.png');
      const what = random();
      if (what < 0.15) this.put(name, jpeg(`new ${this.#made++}`));
      else if (what < 0.25) this.put(mask, this.#mask());
      else if (what < 0.35) this.remove(mask);
      else if (what < 0.45 && this.files.size > 4) {
        this.remove(name);
        this.remove(mask);
      }
    }
    this.add(1 + below(3));
  }

  put(name: string, bytes: Buffer): void {
    const file = path.join(this.folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, bytes);
    utimesSync(file, 1000, 1000);
    this.files.set(name, bytes);
  }

  remove(name: string): void {
    rmSync(path.join(this.folder, name), { force: true });
    this.files.delete(name);
  }

  /** What a dataset of it contains, except the class files. */
  get expected(): Map<string, string> {
    return new Map([...this.files].map(([name, bytes]) => [name, bytes.toString('base64')]));
  }

  #mask(): Buffer {
    return Buffer.concat([PNG, Buffer.from(`mask ${this.#made++}`)]);
  }
}

const sorted = (found: ReadonlyMap<string, string>) =>
  [...found].filter(([name]) => !name.endsWith('.cls')).sort(([a], [b]) => (a < b ? -1 : 1));

const folderReader =
  (folder: string): Read =>
  (name) =>
    existsSync(path.join(folder, name)) ? readFileSync(path.join(folder, name)) : null;

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly error: string;
}

function run(args: readonly string[], killAt?: number, began?: (child: ChildProcess) => void): Promise<Ended> {
  const env = { ...process.env, ...(killAt !== undefined && { KILL_AT: String(killAt) }) };
  const preload = killAt === undefined ? [] : ['--import', pathToFileURL('test/kill-at-call.mjs').href];
  const child = spawn(process.execPath, [...preload, bin, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  began?.(child);
  let output = '';
  let error = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    error += chunk;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output, error })));
}

async function mustRun(...args: readonly string[]): Promise<string> {
  const { code, output, error } = await run(args);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${error}`);
  return output;
}

const APPEND = ['--append', '--apply-changes', '--compare', 'checksum', '--workers', '1', '--quiet'];
const PACK = ['--fields', 'seg.png', '--max-shard-samples', '2', '--workers', '1', '--quiet'];

/** The commands under attack: how their dataset is made, their arguments, and their result. */
const COMMANDS = {
  async compact() {
    const source = new Source();
    source.add(9);
    const shards = path.join(emptyFolder(), 'shards');
    await mustRun('pack', source.folder, shards, ...PACK);
    return {
      place: shards,
      before: source.expected,
      after: source.expected,
      args: ['compact', shards, '--max-shard-samples', '5', '--quiet'],
    };
  },
  async applyChanges() {
    const source = new Source();
    source.add(9);
    const shards = path.join(emptyFolder(), 'shards');
    await mustRun('pack', source.folder, shards, ...PACK);
    const before = source.expected;
    source.change();
    return { place: shards, before, after: source.expected, args: ['pack', source.folder, shards, ...APPEND] };
  },
  async reshard() {
    const source = new Source();
    source.add(9);
    const shards = path.join(emptyFolder(), 'shards');
    await mustRun('pack', source.folder, shards, ...PACK);
    const place = path.join(emptyFolder(), 'resharded');
    const args = ['convert', shards, place, '--seed', String(below(99)), '--max-shard-samples', '4', '--quiet'];
    return { place, before: null, after: source.expected, args };
  },
};

test.each(Object.entries(COMMANDS))(
  '%s that is killed before any call that changes files leaves the old or the new dataset, and can be repeated',
  async (name, make) => {
    for (let round = 0; round < 12 * TIMES; round++) {
      const { place, before, after, args } = await make();
      const at = below(60);
      const about = `SHARDTOOL_SEED=${SEED}, ${name}, round ${round}, killed at call ${at}`;
      try {
        await run(args, at);
        const read = folderReader(place);
        if (read('dataset.json') !== null) {
          const found = sorted(contentsOf(read));
          const expected = [before, after].filter((one) => one !== null).map((one) => JSON.stringify(sorted(one!)));
          expect(expected).toContain(JSON.stringify(found));
        } else expect(before).toBeNull();
        await mustRun(...args);
        expect(sorted(contentsOf(read))).toEqual(sorted(after));
        for (const version of existsSync(path.join(place, 'versions'))
          ? readdirSync(path.join(place, 'versions'))
          : []) {
          if (version.endsWith('.json')) contentsOf(read, `versions/${version}`);
        }
        await mustRun('verify', place, '--quiet');
      } catch (cause) {
        throw new Error(`${about}: ${(cause as Error).message}`, { cause });
      }
    }
  },
  900_000,
);

test('two concurrent commands give the same result as the two in sequence', async () => {
  for (let round = 0; round < 6 * TIMES; round++) {
    const { place, after, args } = await COMMANDS.applyChanges();
    const compact = ['compact', place, '--max-shard-samples', '5', '--quiet'];
    const pairs = [args, compact, ['gc', place, '--keep', '3', '--quiet']];
    const both = [pairs[below(3)]!, pairs[below(3)]!];
    await Promise.all(both.map((one) => run(one)));
    const read = folderReader(place);
    contentsOf(read);
    await mustRun(...args);
    await mustRun(...compact);
    expect(sorted(contentsOf(read)), `SHARDTOOL_SEED=${SEED}, round ${round}`).toEqual(sorted(after));
    await mustRun('verify', place, '--quiet');
  }
}, 900_000);

test('a bucket that sends wrong bytes, truncates lists or loses uploads does not corrupt the dataset', async () => {
  for (let round = 0; round < 6 * TIMES; round++) {
    server.objects.clear();
    const source = new Source();
    source.add(9);
    const output = 's3://lies/shards';
    await mustRun('pack', source.folder, output, ...PACK);
    const before = source.expected;
    source.change();
    const read: Read = (name) => server.objects.get(`lies/shards/${name}`)?.bytes ?? null;
    const commands = [
      ['pack', source.folder, output, ...APPEND],
      ['compact', output, '--max-shard-samples', '5', '--quiet'],
    ];
    const args = commands[below(2)]!;
    const after = args[0] === 'pack' ? source.expected : before;
    let restore = (): void => undefined;
    let asked = 0;
    const at = below(40);
    server.fault = ({ method, key }) => {
      restore();
      restore = () => undefined;
      const name = `lies/${key}`;
      const stored = server.objects.get(name);
      if (asked++ < at || method !== 'GET' || stored === undefined || !/\.(?:tar|parquet)$/.test(key)) return undefined;
      if (random() < 0.5) return undefined;
      const bytes = Buffer.from(stored.bytes);
      bytes[below(bytes.length)]! ^= 1 << below(8);
      server.objects.set(name, { ...stored, bytes });
      restore = () => {
        if (server.objects.get(name)?.bytes === bytes) server.objects.set(name, stored);
      };
      return undefined;
    };
    const about = `SHARDTOOL_SEED=${SEED}, ${args[0]}, round ${round}, faulty from request ${at}`;
    try {
      await run(args);
      restore();
      server.fault = () => undefined;
      const expected = [before, after].map((one) => JSON.stringify(sorted(one)));
      expect(expected).toContain(JSON.stringify(sorted(contentsOf(read))));
      await mustRun(...args, ...(args[0] === 'pack' ? ['--restart'] : []));
      expect(sorted(contentsOf(read))).toEqual(sorted(after));
      const local = emptyFolder();
      for (const name of server.names('lies')) {
        const file = path.join(local, name.slice('shards/'.length));
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(file, server.objects.get(`lies/${name}`)!.bytes);
      }
      await mustRun('verify', local, '--quiet');
    } catch (cause) {
      throw new Error(`${about}: ${(cause as Error).message}`, { cause });
    } finally {
      server.fault = () => undefined;
    }
  }
}, 900_000);

const PAIRS = [
  ['append', 'append'],
  ['append', 'relabel'],
  ['append', 'erase'],
  ['append', 'compact'],
  ['append', 'convert'],
  ['erase', 'compact'],
  ['relabel', 'gc'],
  ['relabel', 'compact'],
  ['relabel', 'erase'],
] as const;

/** A dataset in a folder or a bucket, and how its files are read and its commands are killed. */
interface Attacked {
  readonly place: string;
  readonly copy: string;
  readonly readerOf: (location: string) => Read;
  /** Runs two commands, and kills the first one somewhere if `isKilled`. */
  readonly both: (commands: readonly (readonly string[])[], isKilled: boolean) => Promise<Ended[]>;
}

function folderAttacked(): Attacked {
  const folder = emptyFolder();
  return {
    place: path.join(folder, 'shards'),
    copy: path.join(folder, 'copy'),
    readerOf: folderReader,
    both: (commands, isKilled) =>
      Promise.all(commands.map((args, i) => run(args, isKilled && i === 0 ? below(60) : undefined))),
  };
}

function bucketAttacked(): Attacked {
  server.objects.clear();
  return {
    place: 's3://pairs/shards',
    copy: 's3://pairs/copy',
    readerOf: (location) => (name) => server.objects.get(`${location.slice('s3://'.length)}/${name}`)?.bytes ?? null,
    async both(commands, isKilled) {
      const at = isKilled ? below(80) : Number.POSITIVE_INFINITY;
      let first: ChildProcess | undefined;
      let asked = 0;
      server.fault = () => {
        if (asked++ === at) first!.kill('SIGKILL');
        return undefined;
      };
      const ended = commands.map((args, i) =>
        run(args, undefined, (child) => {
          if (i === 0) first = child;
        }),
      );
      return Promise.all(ended).finally(() => {
        server.fault = () => undefined;
      });
    },
  };
}

test.each([
  ['a folder', folderAttacked],
  ['a bucket', bucketAttacked],
])(
  'two concurrent commands in %s, one of which may be killed, leave a whole dataset, and after a repetition that of the two in sequence',
  async (_, attack) => {
    for (let round = 0; round < 2 * PAIRS.length * TIMES; round++) {
      const { place, copy, readerOf, both } = attack();
      const read = readerOf(place);
      const source = new Source();
      source.add(9);
      await mustRun('pack', source.folder, place, ...PACK);
      const before = source.expected;
      const keys = [...before.keys()].filter((name) => name.endsWith('.jpg')).map((name) => name.slice(0, -4));
      source.change();
      const files = emptyFolder();
      const [erased, relabelled] = [keys.slice(0, 2), keys.slice(1, 6)];
      writeFileSync(path.join(files, 'keys.txt'), erased.map((key) => `${key}\n`).join(''));
      const writeLabels = (keys: readonly string[]) =>
        writeFileSync(path.join(files, 'labels.csv'), `key,class\n${keys.map((key) => `${key},wasp\n`).join('')}`);
      writeLabels(relabelled);
      const commands = {
        append: ['pack', source.folder, place, ...APPEND],
        relabel: ['relabel', place, '--labels', path.join(files, 'labels.csv'), '--name', 'fixed'],
        erase: ['erase', place, '--keys', path.join(files, 'keys.txt')],
        gc: ['gc', place, '--keep', '1'],
        compact: ['compact', place, '--max-shard-samples', '5', '--quiet'],
        convert: ['convert', place, copy, '--overwrite', '--seed', '1', '--max-shard-samples', '4', '--quiet'],
      };
      const [pair, isKilled] = [PAIRS[round % PAIRS.length]!, round >= PAIRS.length];
      const two: readonly (keyof typeof commands)[] = random() < 0.5 ? pair : [pair[1], pair[0]];
      const about = `SHARDTOOL_SEED=${SEED}, round ${round}, ${two.join(' and ')}${isKilled ? ', the first killed' : ''}`;
      const withoutErased = (files: ReadonlyMap<string, string>) =>
        new Map([...files].filter(([name]) => !erased.some((key) => name.startsWith(`${key}.`))));
      const erases = two.some((name) => name === 'erase');
      const possible = [before, source.expected].flatMap((one) => (erases ? [one, withoutErased(one)] : [one]));
      const shown = possible.map((one) => JSON.stringify(sorted(one)));
      try {
        const ended = await both(
          two.map((name) => commands[name]),
          isKilled,
        );
        expect(shown).toContain(JSON.stringify(sorted(contentsOf(read))));
        const relabelling = two.indexOf('relabel');
        if (relabelling !== -1 && ended[relabelling]!.code !== 0 && read('overlays/fixed.jsonl') === null) {
          const present = contentsOf(read);
          writeLabels(relabelled.filter((key) => present.has(`${key}.jpg`)));
          await mustRun(...commands.relabel);
        }
        for (const name of two) {
          if (name === 'convert' ? readerOf(copy)('dataset.json') === null : name !== 'relabel') {
            await mustRun(...commands[name]);
          }
        }
        if (two.some((name) => name === 'convert')) {
          expect(shown).toContain(JSON.stringify(sorted(contentsOf(readerOf(copy)))));
        }
        const [first] = two.some((name) => name === 'append') ? [source.expected] : [before];
        expect(sorted(contentsOf(read))).toEqual(sorted(erases ? withoutErased(first) : first));
        if (relabelling !== -1) {
          const rows = (await mustRun('ls', place, '--samples', '--overlay', 'fixed')).trimEnd().split('\n');
          const classes = new Map(rows.map((row) => row.split('\t').slice(0, 2) as [string, string]));
          for (const key of relabelled) if (classes.has(key)) expect([key, classes.get(key)]).toEqual([key, 'wasp']);
          expect([...classes.values()].filter((cls) => cls === 'wasp').length).toBe(
            relabelled.filter((key) => classes.has(key)).length,
          );
        }
        await mustRun('verify', place, '--quiet');
      } catch (cause) {
        throw new Error(`${about}: ${(cause as Error).message}`, { cause });
      }
    }
  },
  900_000,
);
