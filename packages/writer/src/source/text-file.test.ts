import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { FileNameError, SourceError } from '../errors.js';
import { readLines, readTextFile, textLines } from './text-file.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-text-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

async function linesOf(location: string): Promise<string[]> {
  const all: string[] = [];
  for await (const lines of textLines(location)) for (const line of lines) all.push(line);
  return all;
}

test('lines end with a line feed only, and all other characters stay', async () => {
  const lines = ['\u2028a\u2029', '', 'b\r', '\ufeff', '\ufffd'];
  expect(await linesOf(file('a.txt', `\ufeff${lines.join('\n')}\n`))).toEqual(lines);
  expect(await linesOf(file('b.txt', 'a\nb'))).toEqual(['a', 'b']);
  expect(await linesOf(file('empty.txt', ''))).toEqual([]);
  expect(await readLines(file('c.txt', 'a\r\n\r\nb'))).toEqual(['a', '', 'b']);
});

test('lines and characters that span two pieces are whole, also in a compressed file', async () => {
  const lines = Array.from({ length: 400_000 }, (_, row) => `${row} ä😀`);
  lines.splice(1000, 0, 'ß'.repeat(5 << 20));
  const text = lines.join('\n');
  expect(await linesOf(file('many.txt', text))).toEqual(lines);
  const packed = file('many.txt.gz', gzipSync(text, { level: 1 }));
  expect(await readTextFile(packed)).toBe(text);
});

test('a compressed file that is cut short, and text that is not UTF-8, are errors that name the file', async () => {
  const packed = gzipSync('path,class\n'.repeat(1000));
  await expect(linesOf(file('cut.csv.gz', packed.subarray(0, packed.length - 9)))).rejects.toThrow(
    /cut\.csv\.gz cannot/,
  );
  await expect(linesOf(file('latin.txt', Buffer.from([0x61, 0xe9, 0x0a])))).rejects.toThrow(FileNameError);
  // The first half of a character.
  await expect(linesOf(file('half.txt', Buffer.from([0x61, 0xc3])))).rejects.toThrow(FileNameError);
  await expect(linesOf(join(folder, 'none.csv.gz'))).rejects.toThrow(SourceError);
});
