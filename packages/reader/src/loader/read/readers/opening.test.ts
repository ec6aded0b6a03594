import { expect, test } from 'vitest';
import { fetchFirstIndexes } from './opening.js';

type Order = Parameters<typeof fetchFirstIndexes>[0];
type Store = Parameters<typeof fetchFirstIndexes>[1];

/** The shards whose indexes are requested, in their order. Every request fails, and the error is ignored. */
function requested(order: Partial<Order>): number[] {
  const shards: number[] = [];
  const index = (shard: number) => {
    shards.push(shard);
    return Promise.reject(new Error('the server is down'));
  };
  fetchFirstIndexes(order as Order, { indexes: { index } } as unknown as Store);
  return shards;
}

test('if all samples are read first, the indexes of the first 64 shards with samples are requested at once', () => {
  const counts = Float64Array.from({ length: 100 }, (_, shard) => (shard % 3 === 0 ? 0 : 10));
  const wanted = [...counts.keys()].filter((shard) => shard % 3 !== 0);
  expect(requested({ unit: 'sample', all: { counts } as unknown as Order['all'] })).toEqual(wanted.slice(0, 64));
});

test('otherwise the indexes of the shards of the first batch are requested, and those of later batches are not', () => {
  const blocks = [4, 2, 0].map((shard, ordinal) => ({ ordinal, source: 0, pass: 0, pieces: [{ shard }] }));
  const plan = {
    *rows() {
      yield { block: [0, 2, 0] };
      yield { block: [1] };
    },
    blocks: () => blocks,
  };
  const samplesOf = () => ({ firstShard: 10 });
  const order = { unit: 'chunk', begin: { epoch: 0, position: 0 }, plan: () => plan, samplesOf };
  expect(requested(order as unknown as Partial<Order>)).toEqual([14, 10]);
});
