import { ShardtoolError } from '@shardtool/base';
import {
  isImageAlone,
  type OnSkipped,
  type SamplePosition,
  type ShardIndex,
  type ShardLayout,
  type Source,
} from '@shardtool/format';
import { reasonOf, type ShardFaults } from './faults.js';

/**
 * Walks the headers of a shard and compares them with the index: the samples and their positions must be the same.
 * Returns 1 for every row of the index whose payloads can be checked: samples found at their positions, and if the walk
 * ended early, also those that it did not reach.
 */
export async function comparePositions(
  layout: ShardLayout,
  source: Source,
  index: ShardIndex,
  faults: ShardFaults,
  onSkipped: OnSkipped,
): Promise<Uint8Array> {
  const rowOf = new Map(index.key.map((key, row) => [key, row]));
  const seen = new Uint8Array(index.samples);
  const readable = new Uint8Array(index.samples);
  let broken: unknown;
  try {
    for await (const samples of layout.samples(source, onSkipped)) {
      for (const sample of samples) {
        const row = rowOf.get(sample.key);
        if (row === undefined) {
          faults.add('it is in the shard, but not in the index', sample.key);
          continue;
        }
        if (seen[row] === 1) faults.add('it is in the shard twice', sample.key);
        seen[row] = 1;
        const moved = whatMoved(sample, index, row);
        if (moved === null) readable[row] = 1;
        else faults.add(moved, sample.key);
      }
    }
  } catch (error) {
    faults.add(reasonOf(error), error instanceof ShardtoolError ? keyAt(index, error.offset) : undefined);
    broken = error;
  }
  for (let row = 0; row < index.samples; row++) {
    if (seen[row] === 1) continue;
    if (broken !== undefined) readable[row] = 1;
    else faults.add('it is in the index, but not in the shard', index.key[row]!);
  }
  return readable;
}

/** Describes how a sample differs from the index; null if it does not. */
function whatMoved(sample: SamplePosition, index: ShardIndex, row: number): string | null {
  const stored = new Map(sample.fields.map((field) => [field.name, field]));
  if (isImageAlone(sample)) {
    // The sample has no name in the shard, only in the index.
    const named = [...index.fields].filter(([, { offset }]) => offset[row]! >= 0).map(([name]) => name);
    if (named.length === 1) {
      stored.clear();
      stored.set(named[0]!, sample.fields[0]!);
    }
  }
  for (const [name, { offset, bytes, msgpack }] of index.fields) {
    const field = stored.get(name);
    stored.delete(name);
    if (offset[row]! < 0 && field === undefined) continue;
    if (field === undefined) return `field "${name}" is in the index, but not in the shard`;
    if (offset[row]! < 0) return `field "${name}" is in the shard, but not in the index`;
    if (field.bytes !== bytes[row]) return `field "${name}" has ${field.bytes} bytes, the index says ${bytes[row]}`;
    const isTyped = field.msgpack === true;
    if (field.offset !== offset[row] || isTyped !== (msgpack?.[row] === 1)) {
      return `field "${name}" is at byte ${field.offset}, the index says ${offset[row]}`;
    }
  }
  for (const name of stored.keys()) return `field "${name}" is in the shard, but not in the index`;
  if (sample.offset !== index.offset[row] || sample.bytes !== index.bytes[row]) {
    return `it is at byte ${sample.offset} with ${sample.bytes} bytes, the index says ${index.offset[row]} and ${index.bytes[row]}`;
  }
  return null;
}

/** Key of the sample that contains this byte. */
function keyAt(index: ShardIndex, offset: number | undefined): string | undefined {
  if (offset === undefined) return undefined;
  return index.key.find((_, row) => offset >= index.offset[row]! && offset < index.offset[row]! + index.bytes[row]!);
}
