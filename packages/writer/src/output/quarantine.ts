import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countOf, optionName, type Sentence, sentence, writeAtomically } from '@shardtool/base';
import { TooManyBadError } from '../errors.js';
import type { QuarantinedFile } from '../shard/shard-job.js';

export const QUARANTINE_FILE = 'quarantine.jsonl';

/** True if more than the share `maxBad` of the samples is bad. */
export function isTooManyBad(bad: number, samples: number, maxBad: number): boolean {
  return bad > maxBad * samples;
}

/**
 * Throws {@link TooManyBadError} if more than the share `maxBad` of the samples is bad. `listed` describes which of
 * them are in the list.
 */
export function checkBadShare(
  quarantined: readonly QuarantinedFile[],
  samples: number,
  maxBad: number,
  listed: string | Sentence = 'all of them',
): void {
  if (!isTooManyBad(quarantined.length, samples, maxBad)) return;
  const limit = `${Number((maxBad * 100).toFixed(4))} %`;
  throw new TooManyBadError(
    { path: quarantined[0]!.path },
    sentence`${formatBad(quarantined.length, samples)} bad, more than ${optionName('maxBad')} allows (${limit}). quarantine.jsonl lists ${listed}. To accept them, raise ${optionName('maxBad')}. The first: ${quarantined[0]!.reason}`,
  );
}

function formatBad(bad: number, samples: number): string {
  return `${bad} of ${countOf(samples, 'image')} ${bad === 1 ? 'is' : 'are'}`;
}

/** Writes the list, one JSON object per line; no file if the list is empty. */
export async function writeQuarantine(output: string, quarantined: readonly QuarantinedFile[]): Promise<void> {
  if (quarantined.length === 0) return;
  const lines = quarantined.map((file) => `${JSON.stringify(file)}\n`);
  await writeAtomically(join(output, QUARANTINE_FILE), Buffer.from(lines.join('')));
}

/** Reads the list of a folder. */
export function readQuarantine(output: string): QuarantinedFile[] {
  try {
    const lines = readFileSync(join(output, QUARANTINE_FILE), 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as QuarantinedFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A sample that a repair removed from its shard. */
export interface QuarantinedSample extends QuarantinedFile {
  readonly shard: string;
  readonly key: string;
}

/** Adds samples to the list of those that were bad when the dataset was packed. */
export async function addToQuarantine(output: string, samples: readonly QuarantinedSample[]): Promise<void> {
  if (samples.length > 0) await writeQuarantine(output, [...readQuarantine(output), ...samples]);
}
