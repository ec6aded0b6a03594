import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { hasChromium, launchChromium } from '../chromium.js';

const BUILT = 'site/built';
/** A prefix of every address, so that an address without it has no target. */
const BASE = '/below/';
const TEN_MINUTES_MS = 10 * 60_000;

beforeAll(() => {
  execFileSync(process.execPath, ['site/build.mjs', '--base', BASE], { stdio: ['ignore', 'ignore', 'inherit'] });
}, TEN_MINUTES_MS);

function pagesOf(): string[] {
  return readdirSync(BUILT, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'));
}

/** The file of the site for an address; null if there is none. */
function fileAt(address: string): string | null {
  if (!address.startsWith(BASE)) return null;
  const file = path.join(BUILT, decodeURI(address.slice(BASE.length)));
  const found = [file, `${file}.html`, path.join(file, 'index.html')].find(
    (one) => existsSync(one) && statSync(one).isFile(),
  );
  return found ?? null;
}

test('every link, heading and picture of the site has a target, and none is on another host', () => {
  const pages = pagesOf();
  expect(pages.length).toBeGreaterThan(100);
  for (const page of ['index', 'pack', 'format', 'from-pytorch', 'transforms', 'api-python', 'api/classes/Dataset'])
    expect(pages).toContain(`${page}.html`);
  const texts = new Map(pages.map((page) => [path.join(BUILT, page), readFileSync(path.join(BUILT, page), 'utf8')]));
  const faults: string[] = [];
  for (const [page, text] of texts) {
    const own = `${BASE}${path.relative(BUILT, page)}`;
    for (const [, kind, address] of text.matchAll(/\s(href|src)="([^"]+)"/g)) {
      const { origin, pathname, hash } = new URL(address!.replaceAll('&amp;', '&'), `http://site${own}`);
      if (origin !== 'http://site') {
        if (kind === 'src') faults.push(`${page}: ${address} is on another host`);
        continue;
      }
      const file = fileAt(pathname);
      if (file === null) faults.push(`${page}: ${address} does not exist`);
      else if (hash !== '' && !texts.get(file)!.includes(`id="${decodeURIComponent(hash.slice(1))}"`))
        faults.push(`${page}: ${address} names a heading that does not exist`);
    }
  }
  expect([...new Set(faults)]).toEqual([]);
});

test.skipIf(!hasChromium)(
  'the search of the site finds a word in a guide, and sends no request to another host',
  async () => {
    const server = createServer(({ url }, response) => {
      const file = fileAt(new URL(url!, 'http://site').pathname);
      const types: Readonly<Record<string, string>> = {
        '.html': 'text/html',
        '.js': 'text/javascript',
        '.css': 'text/css',
      };
      response.writeHead(file === null ? 404 : 200, { 'content-type': types[path.extname(file ?? '')] ?? '' });
      response.end(file === null ? '' : readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const asked: string[] = [];
      page.on('request', (request) => asked.push(request.url()));
      await page.goto(origin + BASE);
      await page.keyboard.press('Control+k');
      await page.locator('#localsearch-input').fill('qemu-user');
      await page.locator('.VPLocalSearchBox .result').first().click();
      await page.waitForURL((url) => url.pathname === `${BASE}platforms.html`);
      await page.getByRole('heading', { name: 'What depends on the system' }).waitFor();
      expect(asked.filter((url) => !url.startsWith(origin + BASE))).toEqual([]);
    } finally {
      await browser.close();
      server.close();
    }
  },
);
