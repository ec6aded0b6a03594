import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isImageExtension } from './kinds.js';
import { REFUSED } from './refused.js';

test('the page about kinds of images lists every rejected kind with its extensions and its command', () => {
  const page = readFileSync('docs/image-kinds.md', 'utf8');
  const rows = page
    .slice(page.indexOf('## Rejected'))
    .split('\n')
    .filter((line) => line.startsWith('| '));
  const listed = rows.slice(1).map((row) => row.split('|').map((cell) => cell.trim()));
  expect(listed.map(([, name]) => name)).toEqual(REFUSED.map(({ name }) => name));
  for (const [i, { names, command }] of REFUSED.entries()) {
    const [, , extensions, commands] = listed[i]!;
    const [example] = names.length > 0 ? names : extensions!.match(/\w+/g)!;
    expect(commands).toContain(`\`${command(`a.${example}`, 'a')}\``);
    for (const name of names) expect(extensions).toContain(`\`${name}\``);
    expect(names.every(isImageExtension)).toBe(true);
  }
});
