/**
 * Makes docs/pictures/view.png, the picture of `shardtool view` in README.md. The photos are those of examples/photos, whose README
 * names their authors and licences. Needs chromium-headless-shell, like the tests of the page.
 *
 *     npm run build && node scripts/view-picture.mjs
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { chromium } from 'playwright-core';
import { startServer } from '../packages/cli/dist/view/server/server.js';

// Resolved from the package of the decoder, because the root does not depend on it.
const sharp = createRequire(new URL('../packages/reader/package.json', import.meta.url))('sharp');
const SIZE = { width: 1100, height: 560 };
const COLOURS = 128;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const picture = path.join(root, 'docs/pictures/view.png');
const folder = mkdtempSync(path.join(os.tmpdir(), 'shardtool-view-picture-'));
// The page shows the location as it was typed.
process.chdir(folder);

await pack(path.join(root, 'examples/photos'), 'shards');
const dataset = await openDataset('shards');
const server = await startServer(dataset, {
  port: 0,
  location: 'shards',
  page: new URL('packages/cli/lib/page/', pathToFileURL(`${root}/`)),
});
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: SIZE });
await page.goto(server.address, { waitUntil: 'networkidle' });
const shown = await page.screenshot();
await browser.close();
await server.close();
await dataset.close();
const { size } = await sharp(shown).png({ palette: true, colours: COLOURS, effort: 10 }).toFile(picture);
rmSync(folder, { recursive: true });
console.log(`${picture}: ${size} bytes`);
