/** The page of `shardtool view --static`, and `shardtool/web`, in a browser with files from plain servers. */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hasChromium, launchChromium } from './chromium.js';
import { shardtool } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { OPEN_TO_ALL, type RangeServer, rangeServer } from './range-server.js';
import { makeRepeatedDataset } from './repeated-dataset.mjs';
import { archive, entry } from './tar-craft.js';

describe.skipIf(!hasChromium)('in chromium', () => {
  let browser: Browser;
  const site = emptyFolder();
  const files = emptyFolder();
  /** The server of the page, and another one. */
  let own: RangeServer;
  let other: RangeServer;

  beforeAll(async () => {
    browser = await launchChromium();
    [own, other] = [await rangeServer(site), await rangeServer(files)];
    const photos = await packedPhotos();
    cpSync(photos, path.join(site, 'photos'), { recursive: true });
    cpSync(photos, path.join(files, 'photos'), { recursive: true });
    cpSync('packages/cli/lib/web', path.join(site, 'web'), { recursive: true });
    writeFileSync(path.join(site, 'empty.html'), '<!doctype html><title>empty</title>');
    expect((await shardtool('view', '--static', path.join(site, 'index.html'))).code).toBe(0);
  });
  beforeEach(() => {
    for (const server of [own, other]) Object.assign(server, { headers: {}, latencyMs: 0 });
    own.sent.length = 0;
  });
  afterAll(async () => {
    await browser?.close();
    await Promise.all([own?.close(), other?.close()]);
  });

  async function opened(address: string): Promise<{ readonly page: Page; readonly complaints: string[] }> {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    await page.goto(address);
    return { page, complaints };
  }

  const header = (page: Page) => page.locator('header p');

  test('the page shows the dataset of its link, filters, sorts and opens samples', async () => {
    const { page, complaints } = await opened(`${own.url}/index.html#${own.url}/photos`);
    await page.locator('.cell img').first().waitFor();
    expect(await header(page).textContent()).toMatch(/^60 samples · 6 tar shards/);
    await page.getByLabel('Where').fill('class = "cat" and width > 10');
    await header(page).getByText('10 of 60 samples').waitFor();
    await page.getByLabel('Where').fill('width > 10 and heigth < 5');
    await page.getByText('there is no column "heigth"').waitFor();
    expect(await page.locator('.pointed mark').textContent()).toBe('heigth < 5');
    await page.getByLabel('Where').fill('');
    await page.getByRole('checkbox', { name: 'moon' }).check();
    await header(page).getByText('10 of 60 samples').waitFor();
    await page.getByLabel('Sort by').selectOption('bytes');
    await page.waitForFunction(() => /url=http.*sort=bytes/.test(location.hash));
    await page.locator('.cell .about', { hasText: 'kB' }).first().waitFor();
    const here = await openDataset(path.join(site, 'photos'));
    const sizes: [number, string][] = [];
    for await (const { fields, key, label } of here.samples()) {
      if (here.classes[label] === 'moon') sizes.push([fields.jpg!.length, key]);
    }
    const names = await page.locator('.cell .name').allTextContents();
    expect(names).toEqual(sizes.sort(([a], [b]) => a - b).map(([, key]) => key));
    await page.locator('.cell').first().click();
    const dialog = page.getByRole('dialog');
    await dialog
      .getByText(/crc32 [0-9a-f]{8} is right/)
      .first()
      .waitFor();
    expect(await dialog.locator('h2').textContent()).toBe(names[0]);
    await dialog.locator('.pane img').waitFor();
    const link = page.url();
    await page.close();
    const again = await opened(link);
    await again.page.getByRole('dialog').getByText('is right').first().waitFor();
    expect([...complaints, ...again.complaints]).toEqual([]);
    await again.page.close();
  });

  test('a page without a link requests one, and a page that was written for a dataset shows the dataset', async () => {
    const { page, complaints } = await opened(`${own.url}/index.html`);
    await page.getByLabel('URL of a dataset').fill('photos');
    await page.getByRole('button', { name: 'Open' }).click();
    await page.locator('.cell img').first().waitFor();
    await page.goBack();
    await page.getByLabel('URL of a dataset').waitFor();
    await shardtool('view', 'photos', '--static', path.join(site, 'photos.html'));
    await page.goto(`${own.url}/photos.html`);
    await page.locator('.cell img').first().waitFor();
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('shards on another server are shown if it allows that, and otherwise the page lists the required headers', async () => {
    const address = `${own.url}/index.html#${other.url}/photos`;
    const { page } = await opened(address);
    await page.getByText('does not allow').waitFor();
    const said = await page.locator('main').textContent();
    expect(said).toContain(`does not allow ${own.url} to read it (CORS)`);
    for (const [name, value] of Object.entries(OPEN_TO_ALL))
      expect(said).toContain(value === '*' ? name : `${name}: ${value}`);
    other.headers = { ...OPEN_TO_ALL, 'Access-Control-Expose-Headers': 'ETag' };
    await page.reload();
    await page.getByText('hides Content-Range').waitFor();
    other.headers = OPEN_TO_ALL;
    await page.reload();
    await page.locator('.cell img').first().waitFor();
    await page.close();
    const gone = await opened(`${own.url}/index.html#${own.url}/nothing`);
    await gone.page.getByText('has no dataset.json').waitFor();
    await gone.page.close();
  });

  test('names and texts of a dataset never become markup, and the page can load nothing else', async () => {
    const bad = '<img src=x onerror=alert(1)><script>alert(2)</script>';
    const name = bad.replaceAll('/', '∕');
    const image = readFileSync('examples/photos/cat/cat_000.jpg');
    const tar = archive(entry({ name: `${name}.jpg` }, image), entry({ name: `${name}.txt` }, bad));
    writeFileSync(path.join(site, 'bad.tar'), tar);
    const { page, complaints } = await opened(`${own.url}/index.html#${own.url}/bad.tar`);
    page.on('dialog', (dialog) => complaints.push(dialog.message()));
    await page.locator('.cell img').first().waitFor();
    await page.locator('.cell').first().click();
    await page.getByRole('dialog').getByText('onerror').first().waitFor();
    expect(await page.locator('main script, dialog script, [onerror]').count()).toBe(0);
    expect(complaints).toEqual([]);
    const added = page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'document.title = "run"';
      document.body.append(script);
      return document.title;
    });
    expect(await added).toBe('shardtool view');
    await page.close();
  });

  test('label columns that are named like properties of objects have histograms and filters', async () => {
    const names = ['constructor', '__proto__', 'toString'];
    const labels = path.join(emptyFolder(), 'labels.csv');
    const rows = Array.from({ length: 10 }, (_, i) => `cat/cat_00${i}.jpg,text ${i % 2},text ${i},${i}`);
    writeFileSync(labels, `path,${names.join(',')}\n${rows.join('\n')}\n`);
    await pack('examples/photos', path.join(site, 'named'), { labels, workers: 1 });
    const shown = names.map((name) => `show=${name}`).join('&');
    const { page, complaints } = await opened(
      `${own.url}/index.html#url=${own.url}/named&${shown}&value.__proto__=text 3&range.toString=2..5`,
    );
    await header(page).getByText('1 of 10 samples').waitFor();
    await page.getByRole('region', { name: 'constructor' }).getByText('text 1').waitFor();
    expect(await page.locator('.cell .name').allTextContents()).toEqual(['cat/cat_003']);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('shardtool/web decodes images in a custom page', async () => {
    const { page, complaints } = await opened(`${own.url}/empty.html`);
    const found = await page.evaluate(`(async () => {
      const { openDataset } = await import('/web/web.js');
      const dataset = await openDataset('photos');
      const cats = await dataset.where('class = "cat"');
      const { width, height } = await dataset.image(cats[0]);
      const row = await dataset.row(cats[0]);
      return { size: dataset.size, cats: cats.length, pixels: [width, height], known: [row.width, row.height] };
    })()`);
    expect(found).toMatchObject({ size: 60, cats: 10 });
    const { pixels, known } = found as { pixels: number[]; known: number[] };
    expect(pixels.toSorted()).toEqual(known.toSorted());
    expect(complaints).toEqual([]);
    await page.close();
  });

  test('of a million samples less than 2 MB are fetched before the first picture, and all samples can be reached', async () => {
    await makeRepeatedDataset(path.join(site, 'million'), {
      source: 'examples/photos',
      samples: 1_000_000,
      shardSamples: 10_000,
    });
    own.latencyMs = 50;
    const started = performance.now();
    const { page, complaints } = await opened(`${own.url}/index.html#${own.url}/million`);
    await page.locator('.cell img').first().waitFor();
    const seconds = (performance.now() - started) / 1000;
    // Five pictures are fetched at a time, and the first one that is shown is among the first five.
    const ofPictures = own.sent.filter(({ pathname }) => pathname.endsWith('.tar')).slice(0, 5);
    const before = own.sent.slice(0, own.sent.indexOf(ofPictures[0]!));
    const bytes = [...before, ...ofPictures].reduce((sum, one) => sum + one.bytes, 0);
    console.log(
      `a million: first picture after ${seconds.toFixed(2)} s and at most ${(bytes / 1e6).toFixed(2)} MB, page included`,
    );
    expect(bytes).toBeLessThan(2_000_000);
    own.latencyMs = 0;
    await page.getByRole('grid').focus();
    await page.keyboard.press('End');
    await page.locator('.cell .name', { hasText: '/999999' }).waitFor();
    await page.getByLabel('Where').fill('class = "cat" and width > 10');
    await header(page)
      .getByText(/^[\d,]+ of 1,000,000 samples/)
      .waitFor();
    await page.getByRole('button', { name: 'Show histograms and sort' }).waitFor();
    expect(complaints).toEqual([]);
    await page.close();
  });
});

test('only pages of the same command are replaced, and no page contains a password', async () => {
  const folder = emptyFolder();
  const file = path.join(folder, 'index.html');
  writeFileSync(file, 'mine');
  const refused = await shardtool('view', '--static', file);
  expect(refused.stderr).toMatch(/index\.html exists and is not a page of "shardtool view --static"/);
  expect(readFileSync(file, 'utf8')).toBe('mine');
  const page = path.join(folder, 'page.html');
  await shardtool('view', '--static', page);
  const empty = readFileSync(page, 'utf8');
  await shardtool('view', 'https://a.org/"><script>?a=$$1$&', '--static', page);
  const given = 'dataset" content="https://a.org/&#34;&#62;&#60;script&#62;?a=$$1$&#38;">';
  expect(readFileSync(page, 'utf8')).toBe(empty.replace('dataset" content="">', () => given));
  const secret = await shardtool(
    'view',
    'https://me:hidden@a.org/shards',
    '--static',
    path.join(folder, 'secret.html'),
  );
  expect(secret.code).toBe(2);
  expect(secret.stderr).toMatch(/would contain the password of https:\/\/a\.org\/shards/);
  expect(existsSync(path.join(folder, 'secret.html'))).toBe(false);
  expect((await shardtool('view', 's3://a/b', '--static', page)).stderr).toMatch(/--static, give the https:\/\/ URL/);
  expect((await shardtool('view', '--static', folder)).stderr).toMatch(/cannot be written: give the name of a file/);
  expect((await shardtool('view')).stderr).toMatch(/view needs a dataset/);
});
