import type { IndexRows } from '@shardtool/format';
import { putLargeSample } from './large-sample.js';
import { type NewField, putSample, type SampleFacts, type SampleWriter } from './put-sample.js';

/** A sample of a shard that is written to another one unchanged. */
export interface StoredSample {
  readonly key: string;
  /** The fields as the new shard stores them; valid until the next sample is requested. Those of a large sample come in pieces. */
  readonly fields: readonly NewField[];
  readonly facts: SampleFacts;
  /** Size of the sample with its headers in the shard that it comes from. */
  readonly bytes: number;
}

/** Puts the sample into a shard and its row into the index. Throws the errors of `putSample` and `putLargeSample`. */
export async function putStored(
  writer: SampleWriter,
  rows: IndexRows,
  { key, fields, facts }: Omit<StoredSample, 'bytes'>,
): Promise<void> {
  if (writer.writeInPieces !== undefined && fields.some(({ pieces }) => pieces !== undefined)) {
    await putLargeSample(writer, rows, key, fields, [], () => facts);
  } else putSample(writer, rows, key, fields, () => facts);
}
