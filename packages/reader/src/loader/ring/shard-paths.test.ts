import { expect, test } from 'vitest';
import { ShardPaths } from './shard-paths.js';

test('paths with any characters are read back unchanged from shared memory', () => {
  const paths = ['/data/a.tar', '', '/données/ü 猫.tar', 'b'];
  const { buffers } = ShardPaths.of(paths);
  const shown = new ShardPaths(structuredClone(buffers));
  expect(paths.map((_, k) => shown.at(k))).toEqual(paths);
  expect(ShardPaths.of([]).buffers.bytes).toHaveLength(0);
});
