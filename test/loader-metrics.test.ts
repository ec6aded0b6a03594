import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { type Dataset, openDataset } from '@shardtool/reader';
import { expect, test, vi } from 'vitest';
import { packedSmall } from './datasets.js';

const shards = await packedSmall({ samples: 96 }, { maxShardSamples: 16 });
const options = {
  transform: 'raw',
  batchSize: 8,
  workers: 1,
  shuffleUnit: 'chunk',
  streams: 2,
  blockSamples: 8,
} as const;

/** Makes reads wait until they are released. */
function gate(dataset: Dataset): { open: () => void; close: () => void; waiting: () => number } {
  const { files } = dataset;
  const read = files.read.bind(files);
  let open: () => void = () => {};
  let isOpen = Promise.resolve();
  let waiting = 0;
  files.read = async (...given) => {
    waiting++;
    await isOpen;
    waiting--;
    await read(...given);
  };
  return {
    open: () => open(),
    waiting: () => waiting,
    close: () => {
      isOpen = new Promise((resolve) => {
        open = resolve;
      });
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}

test('a loop that waits for storage reports that while it waits, and afterwards', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader(options);
  const reads = gate(dataset);
  reads.close();
  const iterator = loader[Symbol.asyncIterator]();
  const first = iterator.next();
  await until(() => reads.waiting() > 0 && loader.totals().waitingMs > 0);
  const begun = performance.now();
  await until(() => performance.now() - begun > 20);
  expect(loader.totals()).toMatchObject({ batches: 0, epoch: -1 });
  expect(loader.totals().waitingMs).toBeGreaterThan(20);
  reads.open();
  await first;
  const { wait, ioMs } = loader.report();
  expect(loader.totals().waitingMs).toBe(0);
  expect(wait.epoch!.waitMsBy.storage + wait.epoch!.waitMsBy.order).toBeGreaterThan(20);
  expect(wait.epoch!.waitMsBy.storage).toBeLessThanOrEqual(ioMs);
  await iterator.return(undefined);
});

test('causes add up to the wait, for a loop and for all loops', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...options, transform: [{ name: 'resize', size: [8, 8] }] });
  for (let epoch = 0; epoch < 2; epoch++) for await (const _ of loader);
  const { wait, ioMs, decodeMs } = loader.report();
  const sum = (times: object) => Object.values(times).reduce((a, b) => a + b, 0);
  expect(wait.epoch).toMatchObject({ epoch: 1, batches: 12, samples: 96 });
  expect(wait.previousEpoch).toMatchObject({ epoch: 0, batches: 12, samples: 96 });
  expect(wait.window).toMatchObject({ batches: 24, samples: 192 });
  const { waitMs, waitMsBy } = wait.epoch!;
  expect(sum(waitMsBy)).toBeCloseTo(waitMs, 6);
  expect(waitMs - waitMsBy.start).toBeCloseTo(ioMs + decodeMs, 6);
  expect(loader.totals()).toMatchObject({ batches: 24, samples: 192, epoch: 1, bad: 0, requests: 0 });
});

test('a slow custom step counts as waiting for the transform', async () => {
  await using dataset = await openDataset(shards);
  const go = new Int32Array(new SharedArrayBuffer(4));
  const module = new URL('./fixtures/step-that-waits.mjs', import.meta.url);
  await using loader = dataset.loader({
    ...options,
    transform: [{ name: 'resize', size: [8, 8] }],
    customSteps: { pixels: { module, options: { go } } },
  });
  const iterator = loader[Symbol.asyncIterator]();
  const first = iterator.next();
  await until(() => Atomics.load(go, 0) === 1);
  const begun = performance.now();
  await until(() => performance.now() - begun > 20);
  Atomics.store(go, 0, 2);
  Atomics.notify(go, 0);
  await first;
  const { transform, decode } = loader.report().wait.epoch!.waitMsBy;
  expect(transform + decode).toBeGreaterThan(20);
  expect(transform).toBeGreaterThan(0);
  await iterator.return(undefined);
});

test('metrics are flat numbers for W&B and TensorBoard', async () => {
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader(options);
  for await (const _ of loader);
  const metrics = loader.metrics();
  expect(Object.values(metrics).every((value) => typeof value === 'number' && Number.isFinite(value))).toBe(true);
  expect(metrics).toMatchObject({ 'shardtool/batches': 12, 'shardtool/samples': 96, 'shardtool/epoch': 0 });
  expect(loader.metrics({ prefix: 'train/' })['train/batches']).toBe(12);
  const shares = Object.entries(metrics).filter(([name]) => name.startsWith('shardtool/wait_share_'));
  expect(shares.reduce((sum, [, share]) => sum + share, 0)).toBeCloseTo(metrics['shardtool/wait_share']!, 9);
});

test('Prometheus reads the metrics of all loaders of a process on one port, until they are closed', async () => {
  await using dataset = await openDataset(shards);
  // A server that listens on port 0 uses any free port, and both loaders share it.
  const metrics = { port: 0 };
  const train = dataset.loader({ ...options, metrics, rank: 0, worldSize: 2 });
  const other = dataset.loader({ ...options, metrics, rank: 1, worldSize: 2 });
  expect(train.metricsUrl).toBeNull();
  for await (const _ of train);
  for await (const _ of other);
  expect(train.metricsUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  expect(other.metricsUrl).toBe(train.metricsUrl);
  const url = train.metricsUrl!;
  const answer = await fetch(url);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await answer.text();
  const lines = text.trimEnd().split('\n');
  for (const line of lines) {
    expect(line).toMatch(
      /^(# (HELP|TYPE) shardtool_\w+ .+|shardtool_\w+\{rank="[01]",loader="\d+"(,cause="\w+")?\} -?\d+(\.\d+)?(e-\d+)?)$/,
    );
  }
  expect(lines.filter((line) => /^shardtool_loader_batches_total\{.*\} 6$/.test(line))).toHaveLength(2);
  expect(text).toContain('# TYPE shardtool_loader_wait_seconds_total counter');
  // Exactly the counters have names that end with "_total".
  const types = lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' '));
  for (const [, , name, type] of types) expect(name!.endsWith('_total')).toBe(type === 'counter');
  expect((await fetch(url.replace('/metrics', '/'))).status).toBe(404);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
  await train.close();
  expect(await (await fetch(url)).text()).not.toContain('rank="0"');
  await other.close();
  expect(other.metricsUrl).toBeNull();
});

test('a port that is in use throws an error for the option metrics', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  await using dataset = await openDataset(shards);
  await using loader = dataset.loader({ ...options, metrics: { port } });
  const loop = async () => {
    for await (const _ of loader);
  };
  const refusal = `Metrics cannot be served on 127.0.0.1:${port} (another process uses this port)`;
  // The second loop tries again.
  await expect(loop()).rejects.toThrow(refusal);
  await expect(loop()).rejects.toThrow(refusal);
  await new Promise((resolve) => taken.close(resolve));
});

test('the error for an invalid option names it', async () => {
  await using dataset = await openDataset(shards);
  expect(() => dataset.loader({ ...options, metrics: { port: 70_000 } })).toThrow(
    "The loader's option metrics is invalid: it is { port: 9464 }",
  );
});

interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: {
    readonly resourceMetrics: readonly {
      readonly resource: { readonly attributes: readonly unknown[] };
      readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[];
    }[];
  };
}

/** Receives metrics like a collector, and responds with this status. */
async function collector(status: number, onReceived: (count: number) => void = () => undefined) {
  const received: Received[] = [];
  const server = createHttpServer(async (request, response) => {
    let text = '';
    for await (const piece of request.setEncoding('utf8')) text += piece;
    const { authorization } = request.headers;
    received.push({ path: request.url!, authorization, body: JSON.parse(text) });
    response.writeHead(status).end('{}');
    onReceived(received.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { received, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close };
}

function metricOf({ body }: Received, name: string): unknown {
  return body.resourceMetrics[0]!.scopeMetrics[0]!.metrics.find((metric) => metric.name === name);
}

test('metrics are sent to the collector of the standard variables, only if they are requested', async () => {
  await using server = await collector(200);
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', server.url);
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'authorization=Bearer%20x');
  vi.stubEnv('OTEL_SERVICE_NAME', 'training');
  try {
    await using dataset = await openDataset(shards);
    const silent = dataset.loader(options);
    for await (const _ of silent);
    await silent.close();
    expect(server.received).toEqual([]);
    const loader = dataset.loader({ ...options, metrics: 'otlp' });
    for await (const _ of loader);
    expect(loader.metricsUrl).toBeNull();
    await loader.close();
    expect(server.received).toHaveLength(1);
    const [request] = server.received;
    expect(request).toMatchObject({ path: '/v1/metrics', authorization: 'Bearer x' });
    const { attributes } = request!.body.resourceMetrics[0]!.resource;
    expect(attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'training' } });
    expect(attributes).toContainEqual({ key: 'process.pid', value: { intValue: String(process.pid) } });
    expect(metricOf(request!, 'shardtool_loader_samples_total')).toMatchObject({
      unit: '',
      sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [{ asDouble: 96 }] },
    });
    expect(metricOf(request!, 'shardtool_loader_waiting_seconds')).toMatchObject({ unit: 's', gauge: {} });
  } finally {
    vi.unstubAllEnvs();
  }
});

test('metrics are sent repeatedly while the loader is open', async () => {
  let sent: (() => void) | undefined;
  const thrice = new Promise<void>((resolve) => {
    sent = resolve;
  });
  await using server = await collector(200, (count) => count === 3 && sent!());
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', `${server.url}/own?x=1`);
  vi.stubEnv('OTEL_METRIC_EXPORT_INTERVAL', '1');
  try {
    await using dataset = await openDataset(shards);
    await using loader = dataset.loader({ ...options, metrics: { port: 0 } });
    for await (const _ of loader);
    await thrice;
    expect(server.received[0]!.path).toBe('/own?x=1');
    expect(loader.metricsUrl).not.toBeNull();
  } finally {
    vi.unstubAllEnvs();
  }
});

test('a collector that fails causes a warning, and all batches are delivered', async () => {
  await using server = await collector(503);
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', server.url);
  let note: ((warning: Error) => void) | undefined;
  const warned = new Promise<Error>((resolve) => {
    note = (warning) => (warning as { code?: string }).code === 'SHARDTOOL_METRICS_NOT_SENT' && resolve(warning);
    process.on('warning', note);
  });
  try {
    await using dataset = await openDataset(shards);
    const loader = dataset.loader({ ...options, metrics: 'otlp' });
    let batches = 0;
    for await (const _ of loader) batches++;
    await loader.close();
    expect(batches).toBe(12);
    expect((await warned).message).toContain(`could not be sent to ${server.url}/v1/metrics (status 503)`);
  } finally {
    process.off('warning', note!);
    vi.unstubAllEnvs();
  }
});

test('a loader can be closed while its collector answers neither this request nor the one before', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:4318');
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '1');
  const requests = vi.fn(() => new Promise(() => {}));
  vi.stubGlobal('fetch', requests);
  try {
    await using dataset = await openDataset(shards);
    const loaders = Array.from({ length: 3 }, () => dataset.loader({ ...options, metrics: 'otlp' }));
    for (const loader of loaders) for await (const _ of loader);
    await Promise.all(loaders.map((loader) => loader.close()));
    expect(requests).toHaveBeenCalledTimes(1);
  } finally {
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  }
});

test('a collector that sends endless data does not fill the memory', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:4318');
  const kilobyte = new Uint8Array(1024).fill(32);
  let sent = 0;
  const body = () => new ReadableStream({ pull: (to) => (++sent > 1000 ? to.close() : to.enqueue(kilobyte)) });
  vi.stubGlobal('fetch', async () => new Response(body()));
  try {
    await using dataset = await openDataset(shards);
    const loader = dataset.loader({ ...options, metrics: 'otlp' });
    for await (const _ of loader);
    await loader.close();
    expect(sent).toBeGreaterThan(60);
    expect(sent).toBeLessThan(100);
  } finally {
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  }
});
