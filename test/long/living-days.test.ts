import { afterAll, beforeAll, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from '../bucket-server.js';
import { bucketPlace, playChanges } from '../living-model.js';
import { TIMES } from '../repetitions.js';

const DAYS = 30;

let server: BucketServer;
beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());

test('a dataset in a bucket agrees with a model after each of thirty days of appends, changes, erasures, compactions, rollbacks, two writers and kills', async () => {
  for (let seed = 0; seed < TIMES; seed++) await playChanges(1000 + seed, DAYS, bucketPlace(server));
}, 3_600_000);
