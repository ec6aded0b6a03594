/** The page of `shardtool view` in a browser, as a person uses it. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, launchChromium } from './chromium.js';
import { cocoSet } from './coco-set.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { maskedTar } from './masked-tar.js';
import { makeRepeatedDataset } from './repeated-dataset.mjs';
import { archive, entry, pax, record } from './tar-craft.js';
import { serve } from './view-workbench.js';

describe.skipIf(!hasChromium)('in chromium', () => {
  let browser: Browser;
  let photos: string;
  let address: string;

  beforeAll(async () => {
    browser = await launchChromium();
    photos = await packedPhotos();
    await inspect(photos, { workers: 1 });
    address = (await serve(photos)).address;
  });
  afterAll(() => browser?.close());

  /** The page, its errors, and how far things moved unexpectedly on it. */
  interface Opened {
    readonly page: Page;
    readonly complaints: string[];
    jumped(): Promise<number>;
  }

  async function opened(hash = '', from = address, context: BrowserContextOptions = {}): Promise<Opened> {
    const page = await (await browser.newContext({ viewport: { width: 1200, height: 800 }, ...context })).newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      // A rejected request is not an error of the page.
      if (message.type() === 'error' && !message.text().includes('status of 400')) complaints.push(message.text());
    });
    await page.addInitScript(() => {
      const shifts: number[] = [];
      Object.assign(globalThis, { shifts });
      new PerformanceObserver((list) => {
        for (const one of list.getEntries()) shifts.push((one as unknown as { value: number }).value);
      }).observe({ type: 'layout-shift' as string, buffered: true } as PerformanceObserverInit);
    });
    await page.goto(from + hash);
    await page.locator('main img').first().waitFor();
    const sum =
      '(async () => { await new Promise(requestAnimationFrame); return shifts.reduce((a, b) => a + b, 0); })()';
    return { page, complaints, jumped: () => page.evaluate(sum) as Promise<number> };
  }

  const done = ({ page }: Opened) => page.context().close();

  /** The findings of axe, by rule and element. */
  async function violations(page: Page): Promise<string[]> {
    const found = await page.evaluate('axe.run()');
    const { violations: list } = found as { violations: { id: string; nodes: { html: string }[] }[] };
    return list.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  }

  test('samples are shown, an expression filters them, and an error in it is shown next to it', async () => {
    const it = await opened();
    const { page } = it;
    expect(await page.locator('header p').textContent()).toMatch(/^60 samples · 6 tar shards/);
    const where = page.getByLabel('Where');
    await where.fill('class = "cat" and inspect.sharpness > 0');
    await page.getByText('10 of 60 samples').waitFor();
    expect(await page.locator('.cell').count()).toBe(10);
    await where.fill('width > 10 and heigth < 5');
    await page.getByText('there is no column "heigth"').waitFor();
    expect(await page.locator('.pointed mark').textContent()).toBe('heigth < 5');
    expect(await where.getAttribute('aria-invalid')).toBe('true');
    await page.goBack();
    await page.getByText('10 of 60 samples').waitFor();
    expect(it.complaints).toEqual([]);
    expect(await it.jumped()).toBeLessThan(0.01);
    await done(it);
  });

  test('histograms filter, also by columns of inspect, any column sorts, and each state has a link', async () => {
    const it = await opened();
    const { page } = it;
    const shows = (text: string) => page.locator('header p', { hasText: text }).waitFor();
    await page.getByRole('checkbox', { name: 'cat' }).check();
    await page.getByRole('checkbox', { name: 'moon' }).check();
    await shows('20 of 60 samples');
    await page.getByLabel('Another histogram').selectOption('inspect.brightness');
    const bars = page.getByLabel('inspect.brightness', { exact: true }).locator('.bars');
    await bars.locator('.bin').first().waitFor();
    await bars.scrollIntoViewIfNeeded();
    const box = (await bars.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.6, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + 20);
    await page.mouse.up();
    await page.locator('.bin.out').first().waitFor();
    await page.getByLabel('width from').fill('400');
    await page.getByLabel('width from').press('Enter');
    await page.getByLabel('Sort by').selectOption('bytes');
    await page.getByRole('button', { name: 'smallest first' }).click();
    await page.waitForFunction(() => /sort=-bytes/.test(location.hash));
    const shown = async (from: Page) => {
      await from.locator('.cell img').first().waitFor();
      return [await from.locator('header p').textContent(), await from.locator('.cell').allTextContents()];
    };
    const state = await shown(page);
    expect(state[0]).toMatch(/^\d+ of 60 samples/);
    const linked = await opened(new URL(page.url()).hash);
    expect(await shown(linked.page)).toEqual(state);
    const sizes = (state[1] as string[]).map((text) => Number.parseFloat(/([\d.]+) kB$/.exec(text)![1]!));
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await shows('20 of 60 samples');
    expect([...it.complaints, ...linked.complaints]).toEqual([]);
    await done(linked);
    await done(it);
  });

  test('keys move, open, mark and close, and marks become an overlay', async () => {
    const shards = await packedPhotos();
    const it = await opened('', (await serve(shards)).address);
    const { page } = it;
    await page.getByRole('grid').focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'x']) await page.keyboard.press(key);
    const cursor = page.locator('.cell.cursor');
    await cursor.locator('.mark', { hasText: 'left out' }).waitFor();
    const key = (await cursor.locator('.name').textContent())!;
    await page.keyboard.press('End');
    expect(await cursor.getAttribute('data-place')).toBe('59');
    await page.keyboard.press('w');
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.locator('.layers img').waitFor();
    await page.keyboard.press('n');
    await dialog.getByRole('heading', { level: 2 }).filter({ hasNotText: '…' }).waitFor();
    const second = (await page.locator('[data-place="1"] .name').textContent())!;
    await dialog.getByRole('heading', { level: 2, name: second }).waitFor();
    await dialog.getByLabel('Other class').fill('quite another');
    await dialog.getByRole('button', { name: 'Set class' }).click();
    await page.locator('[data-place="1"] .mark', { hasText: 'class: quite another' }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.getAttribute('role'))).toBe('grid');
    await page.getByRole('heading', { name: 'Marks · 3' }).waitFor();
    await page.getByLabel('Save as the overlay').fill('mine');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved: 1 left out, 1 of another class, 1 wrong.').waitFor();
    await using dataset = await openDataset(shards, { overlay: 'mine' });
    expect([dataset.size, await dataset.indexOf(key)]).toEqual([59, -1]);
    expect(dataset.classes[(await dataset.get(second)).label]).toBe('quite another');
    expect(it.complaints).toEqual([]);
    await done(it);
  });

  test('if no index has sizes, a line names the command that adds them, and otherwise not', async () => {
    const [plain, known] = [await opened('', (await serve('examples/photos')).address), await opened('')];
    await plain.page.getByText('No index has widths and heights yet').waitFor();
    await plain.page.locator('#choose > p > code', { hasText: 'shardtool pack examples/photos SHARDS' }).waitFor();
    await known.page.locator('.cell img').first().waitFor();
    expect(await known.page.getByText('No index has widths').count()).toBe(0);
    expect([...plain.complaints, ...known.complaints]).toEqual([]);
    await done(plain);
    await done(known);
  });

  test('a sample is shown at full size, with boxes and masks if there are any', async () => {
    const { images, annotations } = cocoSet(3);
    const shards = path.join(emptyFolder(), 'shards');
    await pack(images, shards, { coco: annotations, workers: 1 });
    const boxes = await opened('#sample=1', (await serve(shards)).address);
    const svg = boxes.page.locator('.layers svg');
    await svg.waitFor();
    expect(await svg.locator('rect').count()).toBeGreaterThan(0);
    await boxes.page.getByRole('button', { name: '8×' }).click();
    await boxes.page.locator('.layers.pixels img').waitFor();
    const drawn = (await boxes.page.locator('.layers img').boundingBox())!;
    const stored = await boxes.page.locator('.layers img').evaluate((img) => (img as HTMLImageElement).naturalWidth);
    expect(drawn.width).toBe(stored * 8);
    await boxes.page.getByRole('checkbox', { name: /object/ }).uncheck();
    await svg.waitFor({ state: 'detached' });
    expect(await boxes.page.getByRole('region', { name: 'What is known of it' }).textContent()).toMatch(
      /crc32 [0-9a-f]{8} is right/,
    );

    const masked = await opened('#sample=0', (await serve(maskedTar(2))).address);
    const mask = masked.page.locator('.mask img');
    await mask.waitFor();
    await masked.page.getByRole('checkbox', { name: 'mask.npy' }).uncheck();
    await masked.page.getByRole('checkbox', { name: 'seg.png' }).check();
    await masked.page.getByAltText('Mask seg.png').waitFor();
    // Its palette is all black.
    const colours = await masked.page.getByAltText('Mask seg.png').evaluate(async (img) => {
      const canvas = document.createElement('canvas');
      await (img as HTMLImageElement).decode();
      Object.assign(canvas, { width: 40, height: 30 });
      const context = canvas.getContext('2d')!;
      context.drawImage(img as HTMLImageElement, 0, 0);
      return new Set(new Uint32Array(context.getImageData(0, 0, 40, 30).data.buffer)).size;
    });
    expect(colours).toBe(17);
    expect([...boxes.complaints, ...masked.complaints]).toEqual([]);
    await done(boxes);
    await done(masked);
  });

  test('the model view follows its list, its seed and its epoch, and a wrong step is named below the list', async () => {
    const it = await opened('#view=model');
    const { page } = it;
    const sources = () =>
      page.locator('.model-samples img').evaluateAll((all) => all.map((img) => (img as HTMLImageElement).src));
    await page.waitForFunction(() => document.querySelectorAll('.model-samples img').length === 16);
    const before = await sources();
    await page.getByLabel('Epoch').fill('3');
    await page.waitForFunction((old) => {
      const now = [...document.querySelectorAll<HTMLImageElement>('.model-samples img')].map(({ src }) => src);
      return now.length === 16 && now.every((src) => !old.includes(src));
    }, before);
    const list = page.getByRole('textbox', { name: 'Transform' });
    await list.fill('[{ "name": "resise", "size": 64 }]');
    await page.locator('#transform-fault', { hasText: 'resise' }).waitFor();
    await list.fill('[{ "name": "resize", "size": [64, 48] }]');
    await page.locator('#transform-fault:empty').waitFor({ state: 'attached' });
    await page.waitForFunction(
      () => document.querySelectorAll<HTMLImageElement>('.model-samples img')[15]?.naturalWidth === 48,
    );
    expect(page.url()).toContain('epoch=3');
    expect(it.complaints).toEqual([]);
    await done(it);
  });

  test('in the model view a mask follows the pixels, and can be hidden', async () => {
    const steps = [{ name: 'resize', size: [60, 80] }];
    const transform = encodeURIComponent(JSON.stringify(steps));
    const it = await opened(`#view=model&transform=${transform}`, (await serve(maskedTar(2))).address);
    const { page } = it;
    const item = page.locator('.model-samples li').first();
    const mask = item.locator('.mask img');
    await mask.waitFor();
    await item.locator('.frame > img').waitFor();
    const [picture, overlay] = await item.evaluate((element) => {
      const placeOf = (selector: string) => {
        const { left, top, width, height } = element.querySelector(selector)!.getBoundingClientRect();
        return { left, top, width, height };
      };
      return [placeOf('.frame > img'), placeOf('.mask img')];
    });
    expect(overlay).toEqual(picture);
    expect(await mask.evaluate((img) => (img as HTMLImageElement).naturalWidth)).toBe(80);
    await page.getByRole('checkbox', { name: 'mask' }).uncheck();
    await mask.waitFor({ state: 'detached' });
    expect(it.complaints).toEqual([]);
    await done(it);
  });

  test('in the model view boxes follow the pixels, and can be hidden', async () => {
    const { images, annotations } = cocoSet(3);
    const shards = path.join(emptyFolder(), 'shards');
    await pack(images, shards, { coco: annotations, workers: 1 });
    const { address: from } = await serve(shards);
    const steps = [
      { name: 'resize', size: [120, 160] },
      { name: 'randomHorizontalFlip', p: 1 },
    ];
    const it = await opened(`#view=model&transform=${encodeURIComponent(JSON.stringify(steps))}`, from);
    const { page } = it;
    const drawn = page.locator('.model-samples .drawn').first();
    await drawn.waitFor();
    // Another sample's picture may be loaded before that of the first one with boxes.
    const item = (await page.locator('.model-samples li:has(.drawn)').first().elementHandle())!;
    await item.waitForSelector('img');
    const [picture, overlay] = await item.evaluate((element) => {
      const placeOf = (selector: string) => {
        const { left, width } = element.querySelector(selector)!.getBoundingClientRect();
        return { left, width };
      };
      return [placeOf('img'), placeOf('svg')];
    });
    expect(overlay!.left).toBeCloseTo(picture!.left, 0);
    expect(overlay!.width).toBeCloseTo(picture!.width, 0);
    const box = drawn.locator('rect').first();
    // A quarter of the size, and mirrored: 10.5 from the left of 640 pixels, 40 wide.
    expect([await box.getAttribute('x'), await box.getAttribute('width')].map(Number)).toEqual([160 - 50.5 / 4, 10]);
    await page.getByRole('checkbox', { name: 'objects' }).uncheck();
    await drawn.waitFor({ state: 'detached' });
    expect(it.complaints).toEqual([]);
    await done(it);
  });

  test('axe finds no problems in light and dark mode, in a narrow window, in the large view and in the model view', async () => {
    // With few samples all kinds of elements are present, and axe checks every one.
    const shards = path.join(emptyFolder(), 'shards');
    await pack('examples/photos', shards, { include: ['**/*_00[12].jpg'], workers: 1 });
    await inspect(shards, { workers: 1 });
    const it = await opened('', (await serve(shards)).address);
    const { page } = it;
    await page.evaluate(axe.source);
    const looks = async () => {
      await page.waitForLoadState('networkidle');
      // Nothing is wider than the window.
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      return violations(page);
    };
    const follow = (hash: string) => page.evaluate((to) => location.assign(to), hash);
    expect(await looks(), 'light').toEqual([]);
    await page.setViewportSize({ width: 380, height: 700 });
    expect(await looks(), 'narrow').toEqual([]);
    await page.setViewportSize({ width: 1200, height: 800 });
    await follow('#sample=3');
    await page.locator('.layers img').waitFor();
    expect(await looks(), 'the large view').toEqual([]);
    await page.keyboard.press('Escape');
    await page.emulateMedia({ colorScheme: 'dark' });
    await follow('#show=inspect.sharpness&value.class=cat');
    await page.getByLabel('Where').fill('width >');
    await page.locator('.pointed').waitFor();
    expect(await looks(), 'dark').toEqual([]);
    await follow('#view=model');
    await page.locator('.model-samples img').first().waitFor();
    expect(await looks(), 'what the model sees').toEqual([]);
    await done(it);
  });

  test('names and texts of a hostile dataset run no script, do not reverse text, and are shown escaped', async () => {
    const evil = `<img src=x onerror="globalThis.pwned=1">'"&lt;\u202e\u0007\u2066`;
    const folder = path.join(emptyFolder(), 'images');
    const photo = 'examples/photos/cat/cat_001.jpg';
    for (const name of [evil, '__proto__', 'constructor']) {
      mkdirSync(path.join(folder, name), { recursive: true });
      copyFileSync(photo, path.join(folder, name, `${evil}.jpg`));
      writeFileSync(path.join(folder, name, `${evil}.txt`), `</pre><script>globalThis.pwned=1</script>\u202e`);
    }
    const shards = path.join(emptyFolder(), 'shards');
    await pack(folder, shards, { workers: 1, fields: ['txt'] } as never).catch(() =>
      pack(folder, shards, { workers: 1 }),
    );
    const it = await opened('', (await serve(shards)).address);
    const { page } = it;
    expect(await page.locator('.cell').count()).toBe(3);
    await page.locator('.cell', { hasText: '\\u202e\\u0007\\u2066' }).first().click();
    await page.locator('.layers img').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('checkbox', { name: '<img src=x' }).check();
    await page.locator('header p', { hasText: '1 of 3 samples' }).waitFor();
    await page.getByRole('checkbox', { name: '__proto__' }).check();
    await page.locator('header p', { hasText: '2 of 3 samples' }).waitFor();
    await page.getByLabel('Where').fill(`class = "${'<img src=x onerror=globalThis.pwned=1>'}\u202e"`);
    await page.getByText('there is no class').waitFor();

    const tar = path.join(emptyFolder(), '<b>x.tar');
    writeFileSync(
      tar,
      archive(
        ...[pax(record('path', `${evil}.jpg`)), entry({ name: 'x.jpg' }, Buffer.from('<svg onload=pwned=1>'))],
        ...[pax(record('path', `${evil}.a<i>b\u202e.json`)), entry({ name: 'x.json' }, '{"a": "<script>\u202e"}')],
      ),
    );
    const broken = await browser.newPage();
    await broken.goto(`${(await serve(tar)).address}#sample=0`);
    await broken.locator('.layers .fault, .pane .fault').first().waitFor();
    for (const one of [page, broken]) {
      expect(await one.evaluate('globalThis.pwned')).toBeUndefined();
      expect(await one.evaluate(() => document.querySelectorAll('img[onerror], script:not([src]), i, b').length)).toBe(
        0,
      );
      const text = await one.evaluate(() => document.body.textContent);
      expect(text).not.toMatch(/\p{Cf}/u);
      expect(text).not.toContain('\u0007');
    }
    expect(it.complaints).toEqual([]);
    await broken.close();
    await done(it);
  });

  test('a million samples can be scrolled to the end without the page growing, and samples out of view are not decoded', async () => {
    const folder = path.join(emptyFolder(), 'million');
    await makeRepeatedDataset(folder, { source: 'examples/photos', samples: 1_000_000, shardSamples: 50_000 });
    const it = await opened('#size=96', (await serve(folder)).address, { viewport: { width: 700, height: 700 } });
    const { page } = it;
    const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
    let asked = 0;
    page.on('request', (request) => {
      if (request.url().includes('thumbnail')) asked++;
    });
    const counts: number[] = [await elements()];
    // With the wheel, then with the scroll bar.
    await page.getByRole('grid').hover();
    for (let turn = 0; turn < 12; turn++) {
      await page.mouse.wheel(0, 1500);
      counts.push(await elements());
    }
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.cell')!.dataset.place) > 100);
    const before = asked;
    const largest = await page.getByRole('grid').evaluate(async (grid) => {
      let most = 0;
      for (let part = 1; part <= 100; part++) {
        grid.scrollTop = ((grid.scrollHeight - grid.clientHeight) * part) / 100;
        await new Promise(requestAnimationFrame);
        most = Math.max(most, document.querySelectorAll('*').length);
      }
      return most;
    });
    counts.push(largest);
    await page.locator('[data-place="999999"] img').waitFor();
    expect(Math.max(...counts)).toBeLessThan(counts[0]! + 600);
    // 100 windows were passed, with some 80 samples each.
    expect(asked - before).toBeLessThan(4000);
    // A turn of the wheel at the end, the list's own steps on the way, and Home.
    await page.mouse.wheel(0, -300);
    await page.getByRole('grid').focus();
    await page.keyboard.press('End');
    await page.locator('[data-place="999999"].cursor').waitFor();
    await page.keyboard.press('Home');
    await page.locator('[data-place="0"].cursor img').waitFor();
    // The list scrolls on, and before its scroll event the timers report that it rests.
    const went = await page.getByRole('grid').evaluate(async (grid) => {
      const { setTimeout } = globalThis;
      const moved = (top: number) => {
        grid.scrollTop = top;
        return new Promise((resolve) => grid.addEventListener('scroll', resolve, { once: true }));
      };
      const timers: (() => void)[] = [];
      globalThis.setTimeout = ((then: () => void) => void timers.push(then)) as never;
      await moved(1000);
      globalThis.setTimeout = setTimeout;
      const again = moved(2000);
      for (const then of timers) then();
      await again;
      return grid.scrollTop;
    });
    expect(went).toBe(2000);
    // A link that is followed while the list is still scrolling, and whose rows take longer than it takes to rest.
    await page.route('**/api/rows*', async (route) => {
      await sleep(500);
      await route.continue();
    });
    await page.evaluate(async () => {
      const grid = document.querySelector('.grid')!;
      grid.scrollTop = 3000;
      await new Promise((resolve) => grid.addEventListener('scroll', resolve, { once: true }));
      grid.scrollTop = 0;
      await new Promise((resolve) => grid.addEventListener('scroll', resolve, { once: true }));
      location.hash = '#size=96&at=123456';
    });
    await page.locator('[data-place="123456"] img').waitFor();
    await page.unroute('**/api/rows*');
    await page.goto(`${page.url().replace(/#.*/, '')}#size=96&at=765432`);
    await page.locator('[data-place="765432"] img').waitFor();
    await page.reload();
    await page.locator('[data-place="765432"] img').waitFor();
    expect(it.complaints).toEqual([]);
    await done(it);
  });
});
