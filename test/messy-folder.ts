/** A messy folder of photos as users have them, and commands that run on it in this process. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { vi } from 'vitest';
import { runCli } from '#cli/cli';
import { fail } from '#cli/terminal/outcome';
import { emptyFolder } from './datasets.js';
import { jpeg, PNG, tree } from './pack-workbench.js';

const odd = (name: string) => readFileSync(path.join('test/fixtures/odd-images', name));

/** Class folders with various kinds, upper and lower case, nested folders, system files, captions, and bad and odd images. */
export function messyFolder(): string {
  return tree({
    'cat/1.jpg': jpeg(1),
    'cat/1.txt': 'a caption',
    'cat/IMG 2.JPG': jpeg(2),
    'cat/a.b.jpeg': jpeg('ab'),
    'cat/deep/er/3.png': PNG,
    'cat/wrong-kind.jpg': PNG,
    'cat/.DS_Store': 'x',
    'cat/Thumbs.db': 'x',
    'cat/drawing.svg': '<svg/>',
    'cat/notes.txt': 'no image is called so',
    'cat/README': 'x',
    'dog/1.jpg': jpeg('dog'),
    'dog/cut.jpg': odd('truncated-half.jpg'),
    'dog/empty.jpg': '',
    'dog/text.png': 'no image at all',
    'dog/gray.jpg': odd('gray.jpg'),
    'dog/cmyk.tif': odd('gray.jpg'),
  });
}

/** The same with files that have the same key. */
export function collidingFolder(): string {
  return tree({
    'cat/1.jpg': jpeg(1),
    'cat/1.png': PNG,
    'cat/a.b.jpg': jpeg('dot'),
    'cat/a_b.jpg': jpeg('line'),
    'dog/2.jpg': jpeg(2),
  });
}

/** Masks in three conventions. */
export function maskedFolders(): { readonly dots: string; readonly suffixes: string; readonly folders: string } {
  const numbers = [1, 2, 10];
  const each = (names: (i: number) => Record<string, Uint8Array>) =>
    tree(Object.assign({}, ...numbers.map((i) => names(i))) as Record<string, Uint8Array>);
  return {
    dots: each((i) => ({ [`cat/i${i}.jpg`]: jpeg(i), [`cat/i${i}.seg.png`]: PNG })),
    suffixes: each((i) => ({ [`cat/i${i}.jpg`]: jpeg(i), [`cat/i${i}_mask.PNG`]: PNG })),
    folders: each((i) => ({ [`images/cat/i${i}.jpg`]: jpeg(i), [`masks/cat/i${i}.png`]: PNG })),
  };
}

/** The output of a command, and its exit code. Folders are replaced by their names here. */
export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in this process; in its output each path of `named` is replaced by its name. */
export async function say(words: readonly string[], named: Readonly<Record<string, string>> = {}): Promise<Said> {
  const said = { stdout: '', stderr: '' };
  const hear = (stream: keyof typeof said) =>
    ((text: unknown, ...more: unknown[]) => {
      said[stream] += String(text);
      (more.find((one) => typeof one === 'function') as (() => void) | undefined)?.();
      return true;
    }) as never;
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(hear('stdout')),
    vi.spyOn(process.stderr, 'write').mockImplementation(hear('stderr')),
    vi.spyOn(console, 'error').mockImplementation((...values) => {
      said.stderr += `${values.join(' ')}\n`;
    }),
  ];
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await runCli(words, (error, flags) => fail(error, words, flags));
    const plain = (text: string) =>
      Object.entries(named).reduce((shown, [name, folder]) => shown.replaceAll(folder, name), text);
    return { code: Number(process.exitCode), stdout: plain(said.stdout), stderr: plain(said.stderr) };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = before;
  }
}

/** Creates a file in a new folder. */
export function fileWith(name: string, text: string): string {
  const folder = emptyFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
}

/** The lines of a list that a pack wrote. */
export function listOf(output: string, list: string): { path: string; reason: string }[] {
  return readFileSync(path.join(output, list), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}
