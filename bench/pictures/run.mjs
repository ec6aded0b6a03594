/**
 * Draws the pictures of README and docs again, for light and dark pages: `npm run pictures`.
 * The chart shows bench/peers/results.json, which `npm run bench:peers -- --publish` writes.
 */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawPeers } from './peers.mjs';
import { THEMES } from './svg.mjs';
import { drawWay } from './way.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The pictures by their path below the project. */
export function pictures() {
  const results = JSON.parse(fs.readFileSync(path.join(root, 'bench/peers/results.json'), 'utf8'));
  return new Map(
    Object.entries(THEMES).flatMap(([name, theme]) => [
      [`docs/pictures/peers-${name}.svg`, drawPeers(results, theme)],
      [`docs/pictures/way-${name}.svg`, drawWay(theme)],
    ]),
  );
}

export function drawPictures() {
  for (const [file, svg] of pictures()) {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), svg);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) drawPictures();
