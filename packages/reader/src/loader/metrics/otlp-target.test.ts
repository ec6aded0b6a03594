import { OptionError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { otlpTarget } from './otlp-target.js';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

test('nothing is sent unless metrics are requested and a collector is named', () => {
  expect(otlpTarget(undefined, ENDPOINT)).toBeNull();
  expect(otlpTarget(false, { ...ENDPOINT, SHARDTOOL_METRICS: 'otlp' })).toBeNull();
  expect(otlpTarget(undefined, { SHARDTOOL_METRICS: ':9464' })).toBeNull();
  expect(otlpTarget('otlp', { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' })).toBeNull();
  expect(otlpTarget('otlp', { ...ENDPOINT, OTEL_METRICS_EXPORTER: 'none' })).toBeNull();
  expect(otlpTarget(undefined, { ...ENDPOINT, SHARDTOOL_METRICS: 'otlp' })).not.toBeNull();
  expect(otlpTarget({ port: 0 }, ENDPOINT)?.url).toBe('http://collector:4318/v1/metrics');
});

test('the standard variables set the address, headers, times and attributes', () => {
  const target = otlpTarget('otlp', {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/otlp/',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a%3Db%0A, x-team = vision ,',
    OTEL_EXPORTER_OTLP_TIMEOUT: '2500',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_METRIC_EXPORT_INTERVAL: '5000',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,job=42',
    OTEL_SERVICE_NAME: 'training',
  });
  expect(target).toEqual({
    url: 'https://collector/otlp/v1/metrics',
    headers: { authorization: 'Bearer a=b', 'x-team': 'vision' },
    timeoutMs: 2500,
    intervalMs: 5000,
    resource: { 'service.name': 'training', job: '42' },
  });
  const own = { ...ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://metrics:9090/api/v1/otlp?x=1' };
  expect(otlpTarget('otlp', own)).toMatchObject({
    url: 'http://metrics:9090/api/v1/otlp?x=1',
    timeoutMs: 10_000,
    intervalMs: 60_000,
    resource: { 'service.name': 'shardtool' },
  });
});

test.each([
  [{}, 'OTEL_EXPORTER_OTLP_ENDPOINT is not set'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }, 'OTEL_EXPORTER_OTLP_ENDPOINT is not the address'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:secret@collector' }, 'credentials to OTEL_EXPORTER_OTLP_HEADERS'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'OTEL_EXPORTER_OTLP_HEADERS cannot be read'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=secret%0Asecret' }, 'HEADERS has a header with a character that HTTP'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=secret%E2%82%AC' }, 'HEADERS has a header with a character that HTTP'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a secret=b' }, 'HEADERS has a header with a character that HTTP'],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=secret%' }, 'OTEL_EXPORTER_OTLP_HEADERS cannot be read'],
  [{ ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: '1 s' }, 'OTEL_METRIC_EXPORT_INTERVAL is "1 s"'],
])('unusable variables are rejected without showing their secrets: %j', (environment, sentence) => {
  expect(() => otlpTarget('otlp', environment)).toThrow(OptionError);
  expect(() => otlpTarget('otlp', environment)).toThrow(sentence);
  expect(() => otlpTarget('otlp', environment)).not.toThrow(/secret/);
  // Variables of the cluster do not stop a loader that only serves metrics.
  expect(otlpTarget({ port: 0 }, environment)).toBeNull();
});
