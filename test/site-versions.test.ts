import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { versionsIn, writeVersions } from '../site/versions.mjs';
import { emptyFolder } from './datasets.js';

function folderOf(names: readonly string[]): string {
  const folder = emptyFolder();
  for (const name of names) {
    mkdirSync(path.join(folder, name));
    writeFileSync(path.join(folder, name, 'index.html'), '');
  }
  return folder;
}

test('versions of the site are listed newest first, and other folders are not listed', () => {
  const folder = folderOf(['0.9.0', '0.10.0', '0.10.0-beta.2', '0.10.0-beta.10', 'assets', '1.0']);
  mkdirSync(path.join(folder, '2.0.0'));
  expect(versionsIn(folder)).toEqual(['0.10.0', '0.10.0-beta.10', '0.10.0-beta.2', '0.9.0']);
});

test('the address of the site redirects to the newest release, and to a preview only if there is no release', () => {
  const folder = folderOf(['0.9.0', '0.10.0-beta.1']);
  writeVersions(folder);
  const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');
  expect(read('index.html')).toContain('url=0.9.0/');
  expect(JSON.parse(read('versions.json'))).toEqual(['0.10.0-beta.1', '0.9.0']);
  expect(read('versions.html').match(/href="[^"]+"/g)).toEqual(['href="0.10.0-beta.1/"', 'href="0.9.0/"']);
  const previews = folderOf(['0.1.0-beta.1']);
  writeVersions(previews);
  expect(readFileSync(path.join(previews, 'index.html'), 'utf8')).toContain('url=0.1.0-beta.1/');
});
