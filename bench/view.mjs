// The page of `shardtool view` over 1,000,000 samples, in Debian's chromium: when the first pictures stand, what a frame costs
// while it scrolls, and which frames are late. `node bench/view.mjs [samples]`
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { makeRepeatedDataset } from '../test/repeated-dataset.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const samples = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = 9;
const SCROLL_MS = 5000;
const FRAME_MS = 1000 / 60;
/** Pixels a frame: reading, leafing through, and pulling the scroll bar. */
const WAYS = {
  'slowly, 20 pixels a frame': 20,
  'fast, 300 pixels a frame': 300,
  'in leaps, 30,000 pixels a frame': 30_000,
};
/** What a browser's trace calls work of scripts. */
const SCRIPTS = new Set([
  'EvaluateScript',
  'EventDispatch',
  'FireAnimationFrame',
  'FunctionCall',
  'RunMicrotasks',
  'TimerFire',
]);

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-view-'));
const place = path.join(folder, 'shards');
await makeRepeatedDataset(place, { source: path.join(root, 'examples/photos'), samples, shardSamples: 20_000 });
const began = performance.now();
const child = spawn(process.execPath, [path.join(root, 'packages/cli/lib/main.js'), 'view', place], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const address = await new Promise((resolve) => {
    child.stdout.on('data', (text) => {
      const found = /http:\S+/.exec(String(text));
      if (found !== null) resolve(found[0]);
    });
  });
  console.log(`${samples} samples; load ${loadavg()[0].toFixed(1)}`);
  console.log(`server: ${(performance.now() - began).toFixed(0)} ms until its address is printed`);
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: process.getuid() === 0 ? ['--no-sandbox'] : [],
  });
  await firstPictures(browser, address);
  for (const [name, pixels] of Object.entries(WAYS)) await scroll(browser, address, name, pixels);
  await browser.close();
} finally {
  child.kill('SIGINT');
  await new Promise((resolve) => child.once('exit', resolve));
  rmSync(folder, { recursive: true });
}

/** From the beginning of a navigation until the first picture, and all that show, are there; each round at another place. */
async function firstPictures(browser, address) {
  const first = [];
  const all = [];
  for (let round = 0; round < ROUNDS; round++) {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    await page.goto(`${address}#at=${Math.floor((samples / ROUNDS) * round)}`, { waitUntil: 'commit' });
    const times = await page.evaluate(async () => {
      let one = null;
      for (;;) {
        const cells = [...document.querySelectorAll('.cell')].filter((cell) => {
          const { top, bottom } = cell.getBoundingClientRect();
          return bottom > 60 && top < innerHeight;
        });
        const stand = cells.filter((cell) => cell.querySelector('img')?.complete);
        if (stand.length > 0) one ??= performance.now();
        if (cells.length > 0 && stand.length === cells.length) return [one, performance.now(), cells.length];
        await new Promise(requestAnimationFrame);
      }
    });
    first.push(times[0]);
    all.push(times[1]);
    if (round === 0) console.log(`${times[2]} pictures show`);
    await page.context().close();
  }
  console.log(`first picture: ${range(first)}; all that show: ${range(all)}`);
}

async function scroll(browser, address, name, pixels) {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(address);
  await page.locator('.cell img').first().waitFor();
  await browser.startTracing(page, { categories: ['devtools.timeline', 'blink.user_timing'] });
  const { frames, grid, elements } = await page.evaluate(
    async ({ by, ms }) => {
      const scroller = document.querySelector('[role=grid]');
      const times = [];
      let most = 0;
      for (const end = performance.now() + ms; performance.now() < end; ) {
        times.push(await new Promise(requestAnimationFrame));
        performance.mark('frame');
        scroller.scrollTop += by;
        if (times.length % 30 === 0) most = Math.max(most, document.querySelectorAll('*').length);
      }
      const measured = performance.getEntriesByName('grid').map(({ duration }) => duration);
      return { frames: times, grid: measured, elements: most };
    },
    { by: pixels, ms: SCROLL_MS },
  );
  const trace = JSON.parse((await browser.stopTracing()).toString());
  await page.context().close();
  const { cpu, clock } = scripting(trace.traceEvents);
  const due = Math.round((frames.at(-1) - frames[0]) / FRAME_MS);
  console.log(
    `${name}: scripting a frame p50 ${ms(quantile(cpu, 0.5))}, p95 ${ms(quantile(cpu, 0.95))} of CPU time ` +
      `(p95 ${ms(quantile(clock, 0.95))} on the clock; the grid's own part p95 ${ms(quantile(grid, 0.95))}); ` +
      `${due - (frames.length - 1)} of ${due} frames dropped; ${elements} elements at most`,
  );
}

/** Milliseconds of scripts between one mark of a frame and the next: CPU time of the main thread, and time on the clock. */
function scripting(events) {
  const marks = events.filter(({ name, cat }) => name === 'frame' && cat.includes('blink.user_timing'));
  const { pid, tid } = marks[0];
  const own = events
    .filter((event) => event.pid === pid && event.tid === tid && event.ph === 'X' && SCRIPTS.has(event.name))
    .sort((a, b) => a.ts - b.ts);
  const starts = marks.map(({ ts }) => ts).sort((a, b) => a - b);
  const cpu = new Array(starts.length - 1).fill(0);
  const clock = cpu.slice();
  let frame = 0;
  let outerEnd = 0;
  for (const { ts, dur = 0, tdur = 0 } of own) {
    // What lies in another event is counted with that.
    if (ts < outerEnd) continue;
    outerEnd = ts + dur;
    while (frame < cpu.length && starts[frame + 1] <= ts) frame++;
    if (frame === cpu.length) break;
    if (ts < starts[0]) continue;
    cpu[frame] += tdur / 1000;
    clock[frame] += dur / 1000;
  }
  return { cpu, clock };
}

function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

function ms(value) {
  return `${value.toFixed(1)} ms`;
}

function range(values) {
  return `median ${ms(quantile(values, 0.5))} (${ms(Math.min(...values))} to ${ms(Math.max(...values))})`;
}
