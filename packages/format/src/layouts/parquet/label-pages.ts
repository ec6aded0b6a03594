import type { SchemaTree } from 'hyparquet';
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from 'hyparquet/src/schema.js';
import { type Page, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY } from './pages/pages.js';
import { refuseLongRuns } from './pages/runs.js';

/** The maximum repetition and definition levels of a column. */
export interface Levels {
  readonly repetition: number;
  readonly definition: number;
}

const LENGTH_BYTES = 4;

export function levelsOf(schemaPath: SchemaTree[]): Levels {
  return { repetition: getMaxRepetitionLevel(schemaPath), definition: getMaxDefinitionLevel(schemaPath) };
}

/**
 * Checks the runs of a page of labels before hyparquet decodes it: those of its levels, and of dictionary positions.
 * `plain` are its decompressed bytes. Throws RangeError.
 */
export function checkPage(page: Page, plain: Uint8Array, { repetition, definition }: Levels): void {
  if (page.kind === 'dictionary') return;
  const { values, repetitionBytes, levelBytes, kind, encoding } = page;
  let at = 0;
  const stated = { repetition: repetitionBytes, definition: levelBytes - repetitionBytes };
  for (const [name, most] of [
    ['repetition', repetition],
    ['definition', definition],
  ] as const) {
    if (most === 0) continue;
    const from = kind === 'data' ? at + LENGTH_BYTES : at;
    at = from + (kind === 'data' ? lengthAt(plain, at) : stated[name]);
    if (at > plain.length) throw new RangeError('its levels are longer than the page');
    refuseLongRuns(plain.subarray(from, at), 32 - Math.clz32(most), values);
  }
  if (encoding === RLE) refuseLongRuns(plain.subarray(at + LENGTH_BYTES), 1, values);
  else if ((encoding === PLAIN_DICTIONARY || encoding === RLE_DICTIONARY) && at < plain.length)
    refuseLongRuns(plain.subarray(at + 1), plain[at]!, values);
}

function lengthAt(bytes: Uint8Array, at: number): number {
  if (at + LENGTH_BYTES > bytes.length) throw new RangeError('it is cut');
  return new DataView(bytes.buffer, bytes.byteOffset + at, LENGTH_BYTES).getUint32(0, true);
}
