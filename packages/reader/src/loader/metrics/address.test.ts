import { expect, test } from 'vitest';
import { isMetricsOptions, metricsAddress } from './address.js';

test.each([
  [':9464', '127.0.0.1', 9464],
  ['9464', '127.0.0.1', 9464],
  ['0.0.0.0:9000', '0.0.0.0', 9000],
  ['node-7.cluster:9000', 'node-7.cluster', 9000],
  ['[::1]:9000', '::1', 9000],
])('SHARDTOOL_METRICS=%s means %s, port %d', (text, host, port) => {
  expect(metricsAddress(undefined, { SHARDTOOL_METRICS: text })).toEqual({ host, port, source: 'SHARDTOOL_METRICS' });
});

test('without the option and the variable, and with false, nothing is served', () => {
  expect(metricsAddress(undefined, {})).toBeNull();
  expect(metricsAddress(undefined, { SHARDTOOL_METRICS: '' })).toBeNull();
  expect(metricsAddress(false, { SHARDTOOL_METRICS: ':9464' })).toBeNull();
  expect(metricsAddress('otlp', { SHARDTOOL_METRICS: ':9464' })).toBeNull();
  expect(metricsAddress(undefined, { SHARDTOOL_METRICS: 'otlp' })).toBeNull();
});

test('the option precedes the variable, and each local rank has its own port', () => {
  const environment = { SHARDTOOL_METRICS: ':1000', LOCAL_RANK: '3', SLURM_LOCALID: '5' };
  expect(metricsAddress({ port: 9464 }, environment)).toMatchObject({ port: 9467, source: 'metrics' });
  expect(metricsAddress(undefined, environment)).toMatchObject({ port: 1003 });
  expect(metricsAddress({ port: 9464 }, { SLURM_LOCALID: '5' })).toMatchObject({ port: 9469 });
  expect(metricsAddress({ port: 0 }, environment)).toMatchObject({ port: 0 });
  expect(() => metricsAddress({ port: 65_535 }, environment)).toThrow('metrics gives local rank 3 the port 65538');
});

test.each(['yes', ':99999', 'http://host:1', ':-1', '::1:9000'])('SHARDTOOL_METRICS=%s is rejected', (text) => {
  expect(() => metricsAddress(undefined, { SHARDTOOL_METRICS: text })).toThrow(
    `SHARDTOOL_METRICS is "${text}": set it to`,
  );
});

test('the option is an object with a port, or false', () => {
  for (const right of [false, 'otlp', { port: 9464 }, { port: 0, host: '::' }])
    expect(isMetricsOptions(right)).toBe(true);
  for (const wrong of [
    true,
    9464,
    null,
    {},
    { port: '9464' },
    { port: 1.5 },
    { port: 1, hots: 'x' },
    { port: 1, host: '' },
  ]) {
    expect(isMetricsOptions(wrong)).toBe(false);
  }
});
