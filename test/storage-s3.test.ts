import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openStorage } from '@shardtool/storage';
import { expect, test, vi } from 'vitest';
import { rclone, s3Server } from './s3-server.js';
import { s3Suite } from './s3-suite.js';

s3Suite('rclone', rclone === null ? null : s3Server);

test('a location without a bucket, and an invalid endpoint, are rejected', async () => {
  await expect(openStorage('s3:///x')).rejects.toThrow(/does not name a bucket/);
  await expect(openStorage('s3://bucket', { endpointUrl: 'host:9000' })).rejects.toThrow(/begins with https/);
});

const MOVED = '<Error><Code>PermanentRedirect</Code></Error>';

/** A bucket in the region eu-west-1, which answers the first three requests for another region at the same time. */
async function bucketElsewhere(refuse: (response: ServerResponse) => void) {
  const waiting: ServerResponse[] = [];
  let arrived = 0;
  const server = createServer(({ headers }, response) => {
    if (headers.authorization!.includes('/eu-west-1/s3/')) {
      response.writeHead(206, { 'content-range': 'bytes 0-1/2', etag: '"a"' }).end('ok');
      return;
    }
    waiting.push(response);
    if (++arrived >= 3) for (const one of waiting.splice(0)) refuse(one);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close };
}

test.each<[string, (response: ServerResponse) => void]>([
  ['301', (response) => response.writeHead(301, { 'x-amz-bucket-region': 'eu-west-1' }).end(MOVED)],
  ['400', (response) => response.writeHead(400).end('<Error><Region>eu-west-1</Region></Error>')],
])('concurrent requests for a bucket in another region are all repeated there (%s)', async (_, refuse) => {
  await using server = await bucketElsewhere(refuse);
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
  try {
    const storage = await openStorage('s3://bucket', { endpointUrl: server.url });
    const sources = await Promise.all(['a', 'b', 'c'].map((name) => storage.open(name)));
    expect(sources.map(({ size }) => size)).toEqual([2, 2, 2]);
  } finally {
    vi.unstubAllEnvs();
  }
});
