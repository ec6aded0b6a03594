import { createHash } from 'node:crypto';
import type { StorageOptions } from '@shardtool/storage';
import { OUTPUT_OPTIONS, PACK_OPTIONS } from '../../option-table.js';
import { type CheckedOptions, recodeOptions } from '../../options.js';
import type { AppendBase } from '../../output/append-base.js';
import type { PlanFacts } from '../../plan/plan-record.js';
import { textPieces } from '../../source/text-file.js';

/**
 * Digest of everything that the shards are made from: the options and the source, by paths, sizes and times. Undefined
 * if the shards are added to others.
 */
export function madeFrom({
  options,
  sourceDigest,
  base,
}: Pick<PlanFacts, 'options' | 'sourceDigest' | 'base'>): string | undefined {
  if (base !== undefined || sourceDigest === null) return undefined;
  return createHash('sha256')
    .update(JSON.stringify([options, sourceDigest]))
    .digest('hex');
}

/**
 * Returns the options that the result depends on, by name, as a resumed pack compares them: the labels by the sha256 of
 * their text, a growing dataset by its identity, and with re-encoding the versions of the encoders. The table of
 * options marks those that change no byte of a shard, or only decide which files and classes there are. These are not
 * recorded; the files and classes themselves are compared.
 */
export async function recordedOptions(
  options: CheckedOptions,
  base: AppendBase | null = null,
): Promise<Record<string, unknown>> {
  const labels = options.labels ?? options.coco ?? options.yolo;
  const all: Record<string, unknown> = Object.fromEntries(
    Object.entries({ ...OUTPUT_OPTIONS, ...PACK_OPTIONS })
      .filter(([, { isRecorded }]) => isRecorded)
      .map(([name]) => [name, options[name as keyof CheckedOptions]]),
  );
  // Absent in the records of earlier versions.
  if (options.pair.length === 0) all.pair = undefined;
  if (options.provenance.length === 0) all.provenance = undefined;
  if (labels !== undefined) all.labels = await hashOfText(labels, options.storage);
  if (base !== null) all.append = base.manifest.identity;
  if (base !== null && options.applyChanges) all.applyChanges = options.compare;
  if (recodeOptions(options) !== null) {
    const { versions } = (await import('sharp')).default;
    all.encoder = `sharp ${versions.sharp}, libvips ${versions.vips}`;
  }
  const names = Object.keys(all).filter((name) => all[name] !== undefined);
  return Object.fromEntries(names.sort().map((name) => [name, all[name]]));
}

async function hashOfText(location: string, storage: StorageOptions | undefined): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of textPieces(location, storage)) hash.update(piece);
  return hash.digest('hex');
}
