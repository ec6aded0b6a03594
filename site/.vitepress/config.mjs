import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { menuOf } from '../pages.mjs';

const site = fileURLToPath(new URL('..', import.meta.url));

/** Pages made by TypeDoc, by kind. */
const KINDS = {
  functions: 'Functions',
  classes: 'Classes',
  interfaces: 'Interfaces',
  'type-aliases': 'Types',
  variables: 'Values',
};

function typescriptMenu() {
  return Object.entries(KINDS).flatMap(([folder, text]) => {
    const within = path.join(site, '.pages/api', folder);
    if (!existsSync(within)) return [];
    const names = readdirSync(within).map((file) => path.basename(file, '.md'));
    return [{ text, collapsed: true, items: names.map((name) => ({ text: name, link: `/api/${folder}/${name}` })) }];
  });
}

const menu = [
  ...menuOf(path.join(site, '..')),
  {
    text: 'API',
    items: [
      { text: 'TypeScript', link: '/api/' },
      { text: 'Python', link: '/api-python' },
    ],
  },
];

const { version } = JSON.parse(readFileSync(path.join(site, '../packages/cli/package.json'), 'utf8'));

/** The prefix of every address, which site/build.mjs sets. */
const base = process.env.SITE_BASE ?? '/';
/** Whether the site has several versions, each in its own folder. */
const hasVersions = process.env.SITE_VERSIONS === '1';

export default defineConfig({
  base,
  title: 'shardtool',
  description: 'Packs millions of small image files into shards and feeds them to training',
  srcDir: '.pages',
  outDir: process.env.SITE_OUTPUT ?? 'built',
  head: [['link', { rel: 'icon', href: `${base}icon.svg` }]],
  // The index of the search is one file, which is fetched on the first search.
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  themeConfig: {
    search: {
      provider: 'local',
      // Guides before lists of properties.
      options: { miniSearch: { searchOptions: { boostDocument: (page) => (page.startsWith('/api/') ? 0.2 : 1) } } },
    },
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'Transforms', link: '/transforms' },
      { text: 'TypeScript', link: '/api/' },
      { text: 'Python', link: '/api-python' },
      !hasVersions
        ? { text: version, link: '/changelog' }
        : {
            text: version,
            items: [
              { text: 'Changelog', link: '/changelog' },
              // One folder above this version. With a target, the browser opens the link instead of VitePress.
              { text: 'All versions', link: '/../versions.html', target: '_self' },
            ],
          },
    ],
    sidebar: { '/': menu, '/api/': typescriptMenu() },
    outline: [2, 3],
  },
});
