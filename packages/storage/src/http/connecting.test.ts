import { afterEach, expect, test, vi } from 'vitest';
import { isProxied } from './connecting.js';

afterEach(() => vi.unstubAllEnvs());

function proxied(location: string, environment: Record<string, string>): boolean {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy']) {
    vi.stubEnv(name, environment[name]);
    vi.stubEnv(name.toUpperCase(), undefined);
  }
  return isProxied(new URL(location));
}

test('requests go through a proxy where there is one and NO_PROXY does not name the host', () => {
  const http_proxy = 'http://proxy:3128';
  expect(proxied('http://host/a', {})).toBe(false);
  expect(proxied('http://host/a', { http_proxy })).toBe(true);
  expect(proxied('https://host/a', { https_proxy: http_proxy })).toBe(true);
  expect(proxied('http://host/a', { http_proxy, no_proxy: '*' })).toBe(false);
  for (const no_proxy of ['host.org', '.org', '*.org', 'other, host.org', 'HOST.org:80']) {
    expect(proxied('http://host.org/a', { http_proxy, no_proxy })).toBe(false);
  }
  for (const no_proxy of ['ost.org', 'host.org:81', 'a.host.org', '']) {
    expect(proxied('http://host.org/a', { http_proxy, no_proxy })).toBe(true);
  }
  expect(proxied('https://host.org/a', { http_proxy, no_proxy: 'host.org:443' })).toBe(false);
  expect(proxied('http://[::1]:9000/a', { http_proxy, no_proxy: '[::1]' })).toBe(false);
});
