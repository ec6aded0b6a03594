/**
 * Reading remote data: `node bench/storage/run.mjs [first|train|cache|lru|faults|slow] [--batches 60]`. A server in a separate
 * process answers range requests after a latency. The slow file system is test/slowfs, which needs FUSE; `--batches` is the
 * number of batches read from it (256 are an epoch). The dataset has 256 shards of 64 photos, which are hard links to one
 * shard.
 */
import { fork } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createManifest, indexPathOf, readManifest, writeManifest } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { CacheFolder } from '@shardtool/storage';
import { pack } from '@shardtool/writer';
import { buildSlowfs, mountSlow } from '../../test/slowfs/slow-folder.mjs';

const { positionals: wanted, values } = parseArgs({
  allowPositionals: true,
  options: { batches: { type: 'string', default: '60' } },
});
const BATCHES = Number(values.batches);
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-storage-'));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const show = (name, figures) => console.log(name, JSON.stringify(figures));

/** `shards` shards of 64 photos of 52 kB: one packed shard under many names. */
async function dataset(shards) {
  const base = path.join(work, 'base');
  if (!fs.existsSync(base)) {
    const photos = path.join(work, 'photos/a');
    fs.mkdirSync(photos, { recursive: true });
    const files = fs.readdirSync('examples/photos', { recursive: true }).filter((name) => name.endsWith('.jpg'));
    for (let i = 0; i < 64; i++)
      fs.copyFileSync(path.join('examples/photos', files[i % files.length]), path.join(photos, `${i}.jpg`));
    await pack(path.dirname(photos), base, { maxShardSamples: 64 });
  }
  const folder = path.join(work, `of-${shards}`);
  if (fs.existsSync(folder)) return folder;
  fs.mkdirSync(folder);
  const manifest = await readManifest(base);
  const [one] = manifest.shards;
  const list = Array.from({ length: shards }, (_, k) => {
    const file = `${String(k).padStart(6, '0')}.tar`;
    fs.linkSync(path.join(base, one.file), path.join(folder, file));
    fs.linkSync(indexPathOf(path.join(base, one.file)), indexPathOf(path.join(folder, file)));
    return { ...one, file };
  });
  await writeManifest(folder, createManifest({ ...manifest, shards: list }));
  return folder;
}

/** Starts a server for ranges of files in a separate process. */
function serve(folder, latencyMs, faultEvery = 0) {
  const child = fork(new URL('./storage-server.mjs', import.meta.url), [folder, latencyMs, faultEvery].map(String));
  return new Promise((resolve) => {
    child.once('message', ({ port }) => {
      resolve({
        url: `http://127.0.0.1:${port}`,
        sent: () => new Promise((done) => child.once('message', ({ sent }) => done(sent)) && child.send('sent')),
        stop: () => child.kill(),
      });
    });
  });
}

/** Images per second after the first batch, milliseconds to the first batch, CPU seconds per thousand images. */
async function run(location, options = {}, batches = Number.POSITIVE_INFINITY, onFirst = async () => {}) {
  const began = performance.now();
  const opened = await openDataset(location);
  const loader = opened.loader({ transform: 'train224', batchSize: 64, workers: 2, seed: 1, ...options });
  let firstMs = 0;
  let at = 0;
  let cpu = process.cpuUsage();
  let images = 0;
  let n = 0;
  for await (const batch of loader) {
    if (n++ === 0) {
      firstMs = performance.now() - began;
      await onFirst();
      at = performance.now();
      cpu = process.cpuUsage();
    } else images += batch.size;
    if (n === batches) break;
  }
  const seconds = (performance.now() - at) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const report = loader.report();
  await loader.close();
  await opened.close();
  return { rate: images / seconds, firstMs, cpuMs: (user + system) / images, storage: report.storage };
}

/** Bytes fetched in three epochs with a cache for half of the data, as shares of the data. */
async function halfCached(eviction) {
  const folder = await dataset(256);
  const bytes = (await readManifest(folder)).bytes;
  const server = await serve(folder, 0);
  for (const shuffleUnit of ['shard', 'chunk']) {
    const opened = await openDataset(server.url);
    const cache = path.join(work, `cache-${shuffleUnit}`);
    const options = { transform: 'raw', batchSize: 64, workers: 1, streams: 32, shuffleUnit, checksum: 'never' };
    const loader = opened.loader({ ...options, cache, cacheSize: bytes / 2 });
    const fetched = [];
    for (let epoch = 0; epoch < 3; epoch++) {
      for await (const _ of loader);
      fetched.push(Number((loader.report().storage.fetchedBytes / bytes).toFixed(3)));
    }
    await loader.close();
    await opened.close();
    fs.rmSync(cache, { recursive: true });
    show(`half of the data cached, evicted ${eviction}, units of a ${shuffleUnit}: fetched per epoch`, fetched);
  }
  server.stop();
}

const BENCHES = {
  async first() {
    const folder = await dataset(1000);
    const server = await serve(folder, 50);
    const before = await server.sent();
    let sent = 0;
    const { firstMs } = await run(server.url, {}, 2, async () => {
      sent = (await server.sent()) - before;
    });
    const local = await run(folder, {}, 2);
    show('first batch of 1,000 shards at 50 ms', {
      firstMs: Math.round(firstMs),
      localMs: Math.round(local.firstMs),
      bytesOfBatch: Number((sent / (64 * 52_000)).toFixed(2)),
    });
    server.stop();
  },
  async train() {
    const folder = await dataset(64);
    const server = await serve(folder, 50);
    const pairs = [];
    for (let round = 0; round < 3; round++) pairs.push([await run(folder), await run(server.url)]);
    show('train224 at 50 ms against local', {
      ratio: median(pairs.map(([local, remote]) => remote.rate / local.rate)),
      local: Math.round(median(pairs.map(([local]) => local.rate))),
      cpuMsAnImage: pairs.map(([local, remote]) => [local.cpuMs / 1000, remote.cpuMs / 1000]),
    });
    server.stop();
  },
  async cache() {
    await halfCached('by next use');
  },
  async lru() {
    // The same code, except that the most recently used piece always has the smallest key, and so is evicted last.
    const { claim, use, write } = CacheFolder.prototype;
    let uses = 0;
    const recent = () => 14_000_000_000 - uses++;
    Object.assign(CacheFolder.prototype, {
      claim(name, bytes) {
        return claim.call(this, name, bytes, recent());
      },
      use(name) {
        return use.call(this, name, recent());
      },
      write(claimed, content) {
        return write.call(this, claimed, content, recent());
      },
    });
    try {
      await halfCached('least recently used');
    } finally {
      Object.assign(CacheFolder.prototype, { claim, use, write });
    }
  },
  async faults() {
    const folder = await dataset(64);
    const [good, bad] = [await serve(folder, 5), await serve(folder, 5, 100)];
    const pairs = [];
    // Small blocks make some thousand requests, so that some dozens of them fail.
    const options = { blockSamples: 4 };
    for (let round = 0; round < 3; round++) {
      const first = round % 2 === 0;
      const one = await run(first ? good.url : bad.url, options);
      const other = await run(first ? bad.url : good.url, options);
      pairs.push(first ? [one, other] : [other, one]);
    }
    show('1 % resets and 503s against none', {
      ratio: pairs.map(([without, withFaults]) => withFaults.rate / without.rate).toSorted((a, b) => a - b),
      cpu: pairs.map(([without, withFaults]) => withFaults.cpuMs / without.cpuMs).toSorted((a, b) => a - b),
      requests: pairs.map(([, { storage }]) => storage.requests),
      retries: pairs.map(([, { storage }]) => storage.retries),
    });
    good.stop();
    bad.stop();
  },
  async slow() {
    // A dataset of fewer shards would be read into memory as a whole.
    const folder = await dataset(256);
    const slowfs = buildSlowfs(work);
    for (const micros of [1000, 20_000]) {
      const pairs = [];
      for (let round = 0; round < 3; round++) {
        // Mounts it again, so that nothing is cached. Both runs read the same number of batches, not whole epochs.
        const slow = await mountSlow(slowfs, folder, micros, micros);
        try {
          pairs.push([await run(folder, {}, BATCHES), await run(slow.path, {}, BATCHES)]);
        } finally {
          await slow.unmount();
        }
      }
      show(`slowfs at ${micros / 1000} ms per call`, {
        ratio: pairs.map(([local, slow]) => slow.rate / local.rate).toSorted((a, b) => a - b),
        firstMs: Math.round(median(pairs.map(([, slow]) => slow.firstMs))),
      });
    }
  },
};

try {
  for (const [name, bench] of Object.entries(BENCHES)) if (wanted.length === 0 || wanted.includes(name)) await bench();
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
