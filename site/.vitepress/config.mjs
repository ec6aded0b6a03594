import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { menuOf } from '../pages.mjs';

const site = fileURLToPath(new URL('..', import.meta.url));

/** What TypeDoc made, by kind. */
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

/** What stands in front of every address: site/build.mjs says it. */
const base = process.env.SITE_BASE ?? '/';

export default defineConfig({
  base,
  title: 'shardtool',
  description: 'Packs millions of small image files into shards and feeds them to training',
  srcDir: '.pages',
  outDir: 'built',
  head: [['link', { rel: 'icon', href: `${base}icon.svg` }]],
  // The index of the search is one file, which is fetched when somebody searches.
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
      { text: version, link: '/changelog' },
    ],
    sidebar: { '/': menu, '/api/': typescriptMenu() },
    outline: [2, 3],
  },
});
