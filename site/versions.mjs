/** Several versions of the site next to each other: a folder per version, a list of them, and a page that redirects to the newest. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const VERSION = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/** Versions with a site in this folder, the newest first. A release is before its previews. */
export function versionsIn(folder) {
  return readdirSync(folder)
    .filter((name) => VERSION.test(name) && existsSync(path.join(folder, name, 'index.html')))
    .sort((a, b) => compared(b, a));
}

function compared(a, b) {
  const [left, right] = [a, b].map((version) => version.split('-'));
  const byNumber = left[0].localeCompare(right[0], 'en', { numeric: true });
  if (byNumber !== 0) return byNumber;
  if (left.length !== right.length) return right.length - left.length;
  return a.localeCompare(b, 'en', { numeric: true });
}

/**
 * Writes `versions.json`, the list of versions, `versions.html`, a page of links to them, and `index.html`, which redirects
 * to the newest release, or to the newest preview if there is no release.
 */
export function writeVersions(folder) {
  const versions = versionsIn(folder);
  const newest = versions.find((version) => !version.includes('-')) ?? versions[0];
  writeFileSync(path.join(folder, 'versions.json'), `${JSON.stringify(versions)}\n`);
  const page = (head, body) =>
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>shardtool</title>\n${head}</head>\n<body>\n${body}\n</body>\n</html>\n`;
  const links = versions.map((version) => `<li><a href="${version}/">${version}</a></li>`).join('\n');
  writeFileSync(path.join(folder, 'versions.html'), page('', `<h1>Versions of shardtool</h1>\n<ul>\n${links}\n</ul>`));
  const refresh = `<meta http-equiv="refresh" content="0; url=${newest}/">\n`;
  writeFileSync(path.join(folder, 'index.html'), page(refresh, `<a href="${newest}/">shardtool ${newest}</a>`));
}
