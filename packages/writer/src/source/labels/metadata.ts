import { access, existsSync } from 'node:fs';
import { join } from 'node:path';
import { LabelsError, option, sentence } from '@shardtool/base';
import { isRemote } from '@shardtool/storage';
import type { InFlight } from '../ahead/in-flight.js';
import { textLines } from '../text-file.js';
import { FILE_NAME } from './labels.js';

/** Names of labels files in a folder of images, as on the Hugging Face Hub (the docs of `datasets`, "ImageFolder"). */
const NAMES = ['metadata.csv', 'metadata.jsonl'] as const;

/**
 * Finds the labels file in a folder of images, whose column `file_name` has the paths. Null if there is none, or if
 * `exclude` excludes it. Throws {@link LabelsError} if there are two, and `SourceTimeoutError` if `flight` gets no
 * answer.
 */
export async function findMetadata(
  source: string,
  exclude: readonly string[],
  flight: InFlight | null,
): Promise<string | null> {
  if (isRemote(source)) return null;
  const isThere = (path: string) =>
    flight === null
      ? existsSync(path)
      : flight.run<boolean>(path, (done) => access(path, (error) => done(null, error === null)));
  const found = await Promise.all(NAMES.map((name) => isThere(join(source, name))));
  const there = NAMES.filter((_, i) => found[i]);
  if (there.length === 0) return null;
  const { default: fastGlob } = await import('fast-glob');
  const names = await fastGlob([...there], { cwd: source, ignore: [...exclude] });
  const paths = names.map((name) => join(source, name));
  const areTables = await Promise.all(paths.map(namesFiles));
  const tables = paths.filter((_, i) => areTables[i]);
  if (tables.length < 2) return tables[0] ?? null;
  const message = sentence`${tables.join(' and ')} both contain labels for the images; choose one with ${option('labels')}, or exclude one.`;
  throw new LabelsError({ path: tables[1] }, message);
}

async function namesFiles(table: string): Promise<boolean> {
  const line = await firstLine(table);
  if (table.endsWith('.csv')) return line.split(',').some((cell) => cell.replace(/^"|"$/g, '') === FILE_NAME);
  try {
    const row: unknown = JSON.parse(line);
    return typeof row === 'object' && row !== null && FILE_NAME in row;
  } catch {
    return false;
  }
}

/** The first line of a file that is not empty; '' if there is none. */
async function firstLine(location: string): Promise<string> {
  for await (const lines of textLines(location)) {
    const line = lines.find((text) => text.trim() !== '');
    if (line !== undefined) return line.trim();
  }
  return '';
}
