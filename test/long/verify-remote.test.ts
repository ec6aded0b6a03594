import { statSync } from 'node:fs';
import path from 'node:path';
import { verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { packedSmall } from '../datasets.js';
import { faultyServer } from '../faulty-server.js';

test('verify fetches a remote shard once, even if it is larger than the memory that it uses', async () => {
  const shards = await packedSmall({ samples: 15, bytes: () => 10_000_000 });
  const server = await faultyServer(path.dirname(shards));
  try {
    expect(await verify(`${server.url}/shards`, { workers: 1 })).toMatchObject({ samples: 15, faults: 0 });
    expect(server.sent).toBeLessThan(1.05 * statSync(path.join(shards, '000000.tar')).size);
  } finally {
    await server.stop();
  }
});
