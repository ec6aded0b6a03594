import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { bucketPlace, folderPlace, playChanges } from './living-model.js';
import { TIMES } from './repetitions.js';

const STEPS = 8;

let server: BucketServer;
beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());

test('after every change in a folder the dataset and its kept versions agree with a simple model', async () => {
  for (let seed = 0; seed < TIMES; seed++) await playChanges(seed, STEPS, folderPlace());
  expect(server.asked).toEqual([]);
}, 600_000);

test('after every change in a bucket the dataset and its kept versions agree with a simple model', async () => {
  for (let seed = 0; seed < TIMES; seed++) {
    // Killed processes are tested in test/long.
    const { killed: _, ...place } = bucketPlace(server);
    await playChanges(seed, STEPS, place);
  }
}, 600_000);
