// Fetches all objects of a bucket in ranges of 8 MiB, 16 at a time, as a loader does: ENDPOINT BUCKET [FOLDER]. The bytes are
// written to memory that is used again, and with FOLDER from there to files. Prints bytes, seconds, and CPU seconds.
import { open } from 'node:fs/promises';
import path from 'node:path';
import { openStorage, RemoteThreads } from '@shardtool/storage';

const RANGE = 8 << 20;
const AT_ONCE = 16;
const [endpointUrl, bucket, folder] = process.argv.slice(2);
const location = `s3://${bucket}`;
const options = { endpointUrl };

const began = performance.now();
const threads = new RemoteThreads({ most: 2, each: 32 });
const ranges = [];
const files = new Map();
let bytes = 0;
for await (const { name, size, version } of (await openStorage(location, options)).list()) {
  for (let at = 0; at < size; at += RANGE) ranges.push({ name, size, version, at, length: Math.min(RANGE, size - at) });
  if (folder !== undefined) files.set(name, await open(path.join(folder, name), 'w'));
  bytes += size;
}
let next = 0;
async function fetchOn() {
  const memory = new Uint8Array(new SharedArrayBuffer(RANGE));
  while (next < ranges.length) {
    const { name, size, version, at, length } = ranges[next++];
    const file = { location: `${location}/${name}`, expected: { size, version }, options };
    const { got } = await threads.read(file, at, memory.subarray(0, length));
    if (got !== length) throw new Error(`${name}: got ${got} bytes at ${at}, not ${length}`);
    await files.get(name)?.write(memory, 0, length, at);
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, fetchOn));
for (const file of files.values()) await file.close();
await threads.close();
const { user, system } = process.cpuUsage();
console.log(JSON.stringify({ bytes, seconds: (performance.now() - began) / 1000, cpu: (user + system) / 1e6 }));
