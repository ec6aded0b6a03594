import { IndexRows } from '@shardtool/format';
import { expect, test } from 'vitest';
import { putLargeSample } from './large-sample.js';
import type { SampleFacts, SampleWriter } from './put-sample.js';

test('the head of a large payload is its first piece, although all pieces share a buffer', async () => {
  const memory = Buffer.alloc(4);
  function* pieces() {
    for (const piece of ['head', 'more', 'rest']) {
      memory.write(piece);
      yield memory.subarray(0, piece.length);
    }
  }
  const writer: Pick<SampleWriter, 'writeInPieces'> = {
    writeInPieces: async (_key, fields) => {
      for (const field of fields) for await (const _ of field.pieces());
      return fields.map(() => 0);
    },
  };
  let head: string | undefined;
  const factsOf = (payloadOf: (name: string) => Uint8Array | undefined): SampleFacts => {
    head = Buffer.from(payloadOf('jpg')!).toString();
    return { source: '', width: 1, height: 1, orientation: 1, cls: -1 };
  };
  const field = { name: 'jpg', bytes: 12, put: () => 0, pieces };
  await putLargeSample(writer as SampleWriter, new IndexRows(), 'a', [field], ['jpg'], (payloadOf) =>
    factsOf((name) => payloadOf(name)),
  );
  expect(head).toBe('head');
});
