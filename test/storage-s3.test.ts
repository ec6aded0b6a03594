import { openStorage } from '@shardtool/storage';
import { expect, test } from 'vitest';
import { rclone, s3Server } from './s3-server.js';
import { s3Suite } from './s3-suite.js';

s3Suite('rclone', rclone === null ? null : s3Server);

test('a location without a bucket, and an endpoint that is none, are refused', async () => {
  await expect(openStorage('s3:///x')).rejects.toThrow(/does not name a bucket/);
  await expect(openStorage('s3://bucket', { endpointUrl: 'host:9000' })).rejects.toThrow(/begins with https/);
});
