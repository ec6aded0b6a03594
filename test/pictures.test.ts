import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const { pictures } = await import(path.resolve('bench/pictures/run.mjs'));
const { CONTESTANTS } = await import(path.resolve('bench/peers/contestants.mjs'));
const drawn: ReadonlyMap<string, string> = pictures();

test('the pictures of the guides equal those that npm run pictures draws from the published figures', () => {
  expect([...drawn.keys()].toSorted()).toEqual(
    readdirSync('docs/pictures')
      .filter((name) => name.endsWith('.svg'))
      .map((name) => `docs/pictures/${name}`),
  );
  for (const [file, svg] of drawn) expect(readFileSync(file, 'utf8'), file).toBe(svg);
});

test('README and ARCHITECTURE show each picture on light and dark pages', () => {
  const pages = readFileSync('README.md', 'utf8') + readFileSync('ARCHITECTURE.md', 'utf8');
  expect([...drawn.keys()].filter((file) => !pages.includes(`"${file}"`))).toEqual([]);
});

test('the chart shows every loader that was measured, and shardtool without its variants', () => {
  const { rows } = JSON.parse(readFileSync('bench/peers/results.json', 'utf8'));
  const chart = drawn.get('docs/pictures/peers-light.svg')!;
  const shown = rows.filter(({ id }: { id: string }) => !id.startsWith('shardtool-'));
  for (const { id, imagesPerSecond } of shown) {
    expect(CONTESTANTS.map((contestant: { id: string }) => contestant.id)).toContain(id);
    expect(chart).toContain(`>${imagesPerSecond.toLocaleString('en-US')}</text>`);
  }
  expect(chart.match(/<rect /g)).toHaveLength(shown.length);
});
