import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyHashes } from './key-hashes.js';
import { hintOnUnknownKey } from './unknown-key.js';

function hashesOf(shards: readonly (readonly string[])[], read: number[] = []) {
  const firstSample = [0];
  for (const keys of shards) firstSample.push(firstSample.at(-1)! + keys.length);
  const keysOf = async (shard: number) => {
    read.push(shard);
    return shards[shard]!;
  };
  return new KeyHashes({ firstSample, keysOf });
}

test('the first sample with a key is found, and no other key, before and after the hashes are sorted', async () => {
  const keys = fc.array(fc.array(fc.string({ maxLength: 2 }), { maxLength: 20 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(keys, fc.string(), async (shards, other) => {
      const all = shards.flat();
      const hashes = hashesOf(shards);
      for (const key of [other, ...all, ...all, other]) expect(await hashes.numberOf(key)).toBe(all.indexOf(key));
    }),
  );
});

test('concurrent look-ups find the same samples as look-ups in sequence', async () => {
  const shards = Array.from({ length: 40 }, (_, shard) => Array.from({ length: 25 }, (_, row) => `${shard}/${row}`));
  const hashes = hashesOf(shards);
  const all = [...shards.flat(), 'none'].reverse();
  const found = await Promise.all(all.map((key) => hashes.numberOf(key)));
  expect(found).toEqual(all.map((_, i) => (i === 0 ? -1 : 1000 - i)));
});

test('a look-up reads the shards up to the one with the key, each once', async () => {
  const shards = Array.from({ length: 40 }, (_, shard) => [`${shard}/0`, `${shard}/1`]);
  const read: number[] = [];
  const hashes = hashesOf(shards, read);
  expect(await hashes.numberOf('3/1')).toBe(7);
  expect(Math.max(...read)).toBeLessThan(16);
  expect(await hashes.numberOf('none')).toBe(-1);
  expect(read.filter((shard) => shard > 3)).toEqual(Array.from({ length: 36 }, (_, i) => i + 4));
});

test('keys with equal hashes are distinguished', async () => {
  const keys = Array.from({ length: 300_000 }, (_, number) => `image ${number}`);
  const hashes = hashesOf([keys.slice(0, 100_000), keys.slice(100_000)]);
  for (let number = 0; number < keys.length; number += 997) expect(await hashes.numberOf(keys[number]!)).toBe(number);
  for (let number = 0; number < 2000; number++) expect(await hashes.numberOf(`other ${number}`)).toBe(-1);
});

test('an unknown key is compared with the first keys', async () => {
  const hashes = hashesOf([['cat/1', 'cat/2'], ['dog/1']]);
  expect(await hintOnUnknownKey(hashes, 'cot/1')).toContain('did you mean "cat/1"?');
  expect(await hintOnUnknownKey(hashes, 'dog/1.jpg')).toBe('; keys have no extension: did you mean "dog/1"?');
});
