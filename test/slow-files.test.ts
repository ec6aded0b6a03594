/** Files of slow file systems, which a helper process opens on Linux. Tests with a slow one are in loader-slow.test.ts. */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { LocalThreads } from '@shardtool/storage';
import { expect, test, vi } from 'vitest';
import { emptyFolder } from './datasets.js';

const OPTIONS = { most: 4, each: 3, opensApart: true } as const;
const isLinux = process.platform === 'linux';
const LONG = { timeout: 60_000 };

function files(count: number): string[] {
  const folder = emptyFolder();
  return Array.from({ length: count }, (_, i) => {
    const file = path.join(folder, String(i));
    fs.writeFileSync(file, `file ${i}`);
    return file;
  });
}

async function read(threads: LocalThreads, file: string): Promise<string> {
  const target = new Uint8Array(new SharedArrayBuffer(20));
  const { got } = await threads.read(file, 5, target);
  return Buffer.from(target.slice(0, got)).toString();
}

const whole = async (threads: LocalThreads, file: string) => Buffer.from(await threads.readFile(file)).toString();

/** Helper processes of that process. */
function openersOf(pid: number): number[] {
  const all = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((child) => {
    try {
      const stat = fs.readFileSync(`/proc/${child}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
      const isOpener = fs.readFileSync(`/proc/${child}/cmdline`, 'latin1').includes('opener-process');
      return stat[0] !== 'Z' && Number(stat[1]) === pid && isOpener;
    } catch {
      return false;
    }
  });
}

/** The files of this list that this process has open. */
function openOf(names: readonly string[]): string[] {
  const links = fs.readdirSync('/proc/self/fd').map((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return links.filter((file) => names.includes(file)).sort();
}

test('files opened by a helper process are read like others, and errors have their class and path', async () => {
  const names = files(300);
  const threads = new LocalThreads(OPTIONS);
  const parts = Promise.all(names.map((file) => read(threads, file)));
  const wholes = Promise.all(names.map((file) => whole(threads, file)));
  expect(await parts).toEqual(names.map((_, i) => String(i)));
  expect(await wholes).toEqual(names.map((_, i) => `file ${i}`));
  if (isLinux) expect(openersOf(process.pid)).toHaveLength(1);
  const missing = path.join(path.dirname(names[0]!), 'none');
  const folder = path.dirname(names[0]!);
  for (const [file, error] of [
    [missing, { name: 'FileNotFoundError', path: missing }],
    [folder, { name: 'FileError', path: folder }],
  ] as const) {
    await expect(read(threads, file)).rejects.toMatchObject(error);
    await expect(threads.readFile(file)).rejects.toMatchObject(error);
  }
  await threads.close();
  await expect(read(threads, names[0]!)).rejects.toThrow('The dataset was closed');
});

test.runIf(isLinux)(
  'datasets share one helper process, which ends with the last of them and leaves no file open',
  async () => {
    const names = files(100);
    const [one, other] = [new LocalThreads(OPTIONS), new LocalThreads(OPTIONS)];
    await Promise.all(names.map((file, i) => read(i % 2 === 0 ? one : other, file)));
    expect(openersOf(process.pid)).toHaveLength(1);
    await one.close();
    expect(await read(other, names[3]!)).toBe('3');
    const late = Promise.allSettled(names.flatMap((file) => [read(other, file), whole(other, file)]));
    await other.close();
    await late;
    await vi.waitUntil(() => openersOf(process.pid).length === 0, LONG);
    await vi.waitUntil(() => openOf(names).length === 0, LONG);
  },
);

test.runIf(isLinux)('if the helper process is killed at any time, threads open its files', async () => {
  const names = files(200);
  for (let round = 0; round < 5; round++) {
    const threads = new LocalThreads(OPTIONS);
    expect(await read(threads, names[0]!)).toBe('0');
    const [opener] = openersOf(process.pid);
    const reading = Promise.all(names.flatMap((file) => [read(threads, file), whole(threads, file)]));
    setTimeout(() => process.kill(opener!, 'SIGKILL'), round * 4);
    expect(await reading).toEqual(names.flatMap((_, i) => [String(i), `file ${i}`]));
    await threads.close();
    await vi.waitUntil(() => openersOf(process.pid).length === 0, LONG);
    expect(openOf(names)).toEqual([]);
  }
});

test.runIf(isLinux)(
  'files to be opened take precedence over whole-file reads that were requested earlier',
  async () => {
    const [folder, [part, ...wholes]] = [emptyFolder(), files(3)];
    // Opening one of these waits until it is opened for writing: as many as are opened concurrently, and one more.
    const held = Array.from({ length: 65 }, (_, i) => path.join(folder, String(i)));
    execFileSync('mkfifo', held);
    const threads = new LocalThreads(OPTIONS);
    const done: string[] = [];
    const all = [...held, ...wholes].map((file) => threads.readFile(file).then(() => done.push(file)));
    const waiting = Promise.allSettled(all);
    const soon = read(threads, part!);
    (await fs.promises.open(held[0]!, 'w')).close();
    // Now this file can be opened; the next one waits after it.
    expect(await soon).toBe('0');
    expect(done).toEqual([]);
    for (const file of held.slice(1)) (await fs.promises.open(file, 'w')).close();
    await waiting;
    expect(done).toEqual(wholes);
    await threads.close();
  },
);

test.runIf(isLinux)('a hanging file system does not block the end of reading, nor the helper process', async () => {
  const held = path.join(emptyFolder(), 'held');
  execFileSync('mkfifo', [held]);
  const threads = new LocalThreads(OPTIONS);
  const reading = threads.readFile(held);
  const failing = expect(reading).rejects.toThrow('The dataset was closed');
  await vi.waitUntil(() => openersOf(process.pid).length === 1, LONG);
  await threads.close();
  await failing;
  await vi.waitUntil(() => openersOf(process.pid).length === 0, LONG);
});

test.runIf(isLinux)(
  'if file systems of some datasets hang, files of others are still opened, even after a dataset was closed',
  async () => {
    const [folder, [part]] = [emptyFolder(), files(1)];
    const held = Array.from({ length: 100 }, (_, i) => path.join(folder, String(i)));
    execFileSync('mkfifo', held);
    const hanging = () => {
      const threads = new LocalThreads(OPTIONS);
      return { threads, ended: Promise.allSettled(held.map((file) => threads.readFile(file))) };
    };
    const first = new LocalThreads(OPTIONS);
    expect(await read(first, part!)).toBe('0');
    const all = [hanging(), hanging()];
    expect(await read(first, part!)).toBe('0');
    const later = new LocalThreads(OPTIONS);
    expect(await read(later, part!)).toBe('0');
    await all[0]!.threads.close();
    all.push(hanging());
    const last = new LocalThreads(OPTIONS);
    expect(await read(last, part!)).toBe('0');
    for (const threads of [first, later, last, ...all.map(({ threads }) => threads)]) await threads.close();
    await Promise.all(all.map(({ ended }) => ended));
  },
);

test.runIf(isLinux)(
  'a program can exit while its helper process exists, and a killed program leaves no helper process',
  async () => {
    const [file] = files(1);
    const program = (end: string) => `
    import { LocalThreads } from '@shardtool/storage';
    const threads = new LocalThreads(${JSON.stringify(OPTIONS)});
    console.log(Buffer.from(await threads.readFile(${JSON.stringify(file)})).toString());
    ${end}`;
    const run = (end: string) =>
      spawn(process.execPath, ['--input-type=module', '-e', program(end)], { stdio: 'pipe' });
    const ending = run('');
    expect(await new Promise((resolve) => ending.once('exit', resolve))).toBe(0);
    const killed = run('setInterval(() => {}, 1000);');
    await new Promise((resolve) => killed.stdout.once('data', resolve));
    const openers = openersOf(killed.pid!);
    expect(openers).toHaveLength(1);
    // Signals of a terminal to all processes do not end it, because the program may continue.
    process.kill(openers[0]!, 'SIGINT');
    killed.kill('SIGKILL');
    await vi.waitUntil(() => !fs.existsSync(`/proc/${openers[0]}`), LONG);
  },
);

test.runIf(isLinux)(
  'if the process cannot open more files, that is the error, and no other open file is read instead',
  async () => {
    const names = files(200);
    const program = `
    import fs from 'node:fs';
    import { LocalThreads } from '@shardtool/storage';
    const threads = new LocalThreads(${JSON.stringify({ ...OPTIONS, most: 1 })});
    const names = ${JSON.stringify(names)};
    // Node itself aborts if a thread cannot start, so the only thread is started before.
    await threads.read(names[0], 0, new Uint8Array(new SharedArrayBuffer(1)));
    const ends = await Promise.allSettled(names.map(async (name, i) => {
      const target = new Uint8Array(new SharedArrayBuffer(20));
      const { got } = await threads.read(name, 5, target);
      return Buffer.from(target.slice(0, got)).toString() === String(i);
    }));
    const wrong = ends.filter(({ status, value }) => status === 'fulfilled' && !value).length;
    const reasons = new Set(ends.flatMap(({ reason }) => (reason ? [reason.message.replace(/\\S*\\/\\d+/, 'FILE')] : [])));
    await threads.close();
    // Throws if standard input was closed by mistake as one of those files.
    fs.fstatSync(0);
    console.log(JSON.stringify({ wrong, reasons: [...reasons] }));`;
    const line = 'ulimit -n 100; exec "$0" --input-type=module -e "$1"';
    const said = execFileSync('bash', ['-c', line, process.execPath, program], { encoding: 'utf8', input: '' });
    const { wrong, reasons } = JSON.parse(said);
    expect(wrong).toBe(0);
    expect(reasons.length).toBeGreaterThan(0);
    for (const reason of reasons) expect(reason).toMatch(/EMFILE|too many/i);
  },
);
