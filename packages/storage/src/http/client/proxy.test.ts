import { afterEach, expect, test, vi } from 'vitest';
import { proxyFor } from './proxy.js';

afterEach(() => vi.unstubAllEnvs());

function proxied(location: string, environment: Record<string, string>): boolean {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy']) {
    vi.stubEnv(name, environment[name]);
    vi.stubEnv(name.toUpperCase(), undefined);
  }
  return proxyFor(new URL(location)) !== null;
}

test('requests go through a proxy if one is set and NO_PROXY does not list the host', () => {
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
  expect(proxied('http://[::1]:9000/a', { http_proxy, no_proxy: '::1' })).toBe(false);
  expect(proxied('http://[::2]/a', { http_proxy, no_proxy: '::1' })).toBe(true);
});

test('HTTP_PROXY is also used for https if HTTPS_PROXY is not set', () => {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy', 'NO_PROXY']) vi.stubEnv(name, undefined);
  vi.stubEnv('HTTP_PROXY', 'one.test:3128');
  vi.stubEnv('HTTPS_PROXY', undefined);
  expect(proxyFor(new URL('https://host/a'))?.url.href).toBe('http://one.test:3128/');
  vi.stubEnv('HTTPS_PROXY', 'https://me:p%40ss@two.test');
  const user = Buffer.from('me:p@ss').toString('base64');
  expect(proxyFor(new URL('https://host/a'))).toMatchObject({ authorization: `Basic ${user}` });
  expect(proxyFor(new URL('http://host/a'))?.authorization).toBeNull();
});

test('a value that is not the URL of a proxy throws an error that does not show it', () => {
  for (const [http_proxy, why] of [
    ['socks5://me:hidden@proxy', 'HTTP_PROXY names a socks5 proxy, and only http and https proxies are supported'],
    ['http://me:hidden@', 'HTTP_PROXY is not the URL of a proxy'],
    ['http://%E0%A4%A@hidden', 'HTTP_PROXY is not the URL of a proxy'],
  ] as const) {
    const error = (() => {
      try {
        return proxied('http://host/a', { http_proxy });
      } catch (error) {
        return error as Error;
      }
    })();
    expect(error).toMatchObject({ name: 'OptionError', message: expect.stringContaining(why) });
    expect((error as Error).message).not.toContain('hidden');
  }
});
