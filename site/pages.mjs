/** The files of the repository that are pages of the site, their place in its menu, and the conversion of their links. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Parts of the menu, each with the files of its pages. */
export const PARTS = {
  Start: [
    'README.md',
    'docs/tutorial.md',
    'docs/tutorial-scale.md',
    'python/README.md',
    'docs/train-node.md',
    'docs/bundlers.md',
    'docs/troubleshooting.md',
  ],
  'How to': [
    'docs/pack.md',
    'docs/pack-large.md',
    'docs/writer.md',
    'docs/train-on-arrays.md',
    'docs/read-by-others.md',
    'docs/choose-samples.md',
    'docs/remote.md',
    'docs/metrics.md',
    'docs/overlays.md',
    'docs/living-datasets.md',
    'docs/verify.md',
    'docs/inspect.md',
    'docs/view.md',
    'docs/browser.md',
    'docs/detection.md',
    'docs/buckets.md',
    'docs/recipes.md',
    'docs/pixel-formats.md',
    'docs/image-kinds.md',
    'docs/views.md',
    'docs/several-images.md',
    'docs/schedules.md',
    'docs/python-transform.md',
    'packages/cuda/README.md',
  ],
  'Use with': [
    'docs/use-with-accelerate.md',
    'docs/use-with-transformers.md',
    'docs/use-with-lightning.md',
    'docs/use-with-timm.md',
    'docs/use-with-ray.md',
    'docs/use-with-spark.md',
    'docs/use-with-grain.md',
    'docs/use-with-others.md',
  ],
  'Coming from': [
    'docs/from-pytorch.md',
    'docs/from-ffcv.md',
    'docs/from-webdataset.md',
    'docs/from-mosaicml.md',
    'docs/from-litdata.md',
    'docs/from-dali.md',
    'docs/from-tfdata.md',
    'docs/from-hf-datasets.md',
    'docs/other-formats.md',
  ],
  Reference: [
    'docs/cli.md',
    'docs/environment.md',
    'docs/loader-options.md',
    'docs/transforms.md',
    'docs/where.md',
    'docs/errors.md',
    'docs/files.md',
    'docs/format.md',
    'docs/implement-a-reader.md',
    'docs/platforms.md',
    'docs/glossary.md',
  ],
  Explanation: ['docs/why-shards.md', 'docs/shuffling.md', 'ARCHITECTURE.md', 'docs/benchmarks.md', 'SECURITY.md'],
  Project: [
    'docs/stability.md',
    'docs/for-agents/SKILL.md',
    'CONTRIBUTING.md',
    'bench/README.md',
    'docs/maintaining.md',
    'docs/long-tests.md',
    'CHANGELOG.md',
  ],
};
/** Pages whose address is not the name of their file (ADDRESSES), or whose name in the menu is not their first heading (NAMES). */
const ADDRESSES = {
  'README.md': 'index',
  'python/README.md': 'python',
  'bench/README.md': 'lab-notebook',
  'packages/cuda/README.md': 'cuda',
  'docs/for-agents/SKILL.md': 'for-agents',
};
const NAMES = {
  'README.md': 'Overview',
  'python/README.md': 'Guide for Python',
  'ARCHITECTURE.md': 'How it works',
  'packages/cuda/README.md': 'To a GPU',
};

/** Writes the pages to a folder. Throws if a page of docs is in no part of the menu. */
export function layOut(root, folder) {
  const files = Object.values(PARTS).flat();
  const forgotten = readdirSync(path.join(root, 'docs')).filter(
    (file) => file.endsWith('.md') && !files.includes(`docs/${file}`),
  );
  if (forgotten.length > 0)
    throw new Error(`Missing in the menu of site/pages.mjs: docs/${forgotten.join(', docs/')}.`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(path.join(root, 'docs/pictures'), path.join(folder, 'public/pictures'), { recursive: true });
  cpSync(path.join(root, 'packages/cli/page/icon.svg'), path.join(folder, 'public/icon.svg'));
  for (const file of files.filter((file) => file !== 'README.md')) {
    writeFileSync(
      path.join(folder, `${addressOf(file)}.md`),
      forSite(readFileSync(path.join(root, file), 'utf8'), file, root),
    );
  }
  writeFileSync(path.join(folder, 'index.md'), startPage(root));
  layOutForModels(root, path.join(folder, 'public'));
}

/** Writes llms.txt, the list of all pages for language models, and the pages unchanged, as text. */
function layOutForModels(root, folder) {
  mkdirSync(path.join(folder, 'raw'));
  const list = Object.entries(PARTS).flatMap(([part, files]) => [
    `\n## ${part}\n`,
    ...files.map((file) => `- [${titleOf(file, root)}](raw/${addressOf(file)}.txt)`),
  ]);
  const [, summary] = /^\*\*(.+)\*\*$/m.exec(readFileSync(path.join(root, 'README.md'), 'utf8'));
  writeFileSync(path.join(folder, 'llms.txt'), `# shardtool\n\n> ${summary}\n${list.join('\n')}\n`);
  for (const file of Object.values(PARTS).flat())
    cpSync(path.join(root, file), path.join(folder, 'raw', `${addressOf(file)}.txt`));
}

/** The menu, in the format of VitePress. */
export function menuOf(root) {
  return Object.entries(PARTS).map(([text, files]) => ({
    text,
    items: files.map((file) => ({ text: titleOf(file, root), link: `/${addressOf(file)}` })),
  }));
}

function addressOf(file) {
  return ADDRESSES[file] ?? path.basename(file, '.md').toLowerCase();
}

function titleOf(file, root) {
  return NAMES[file] ?? /^# (.+)$/m.exec(readFileSync(path.join(root, file), 'utf8'))[1];
}

/** The start page: the hero of site/start.md above README.md without its title. */
function startPage(root) {
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8').replace(/^# .+\n/, '');
  const text = readFileSync(path.join(root, 'site/start.md'), 'utf8').replace('<!-- README -->', readme.trim());
  return forSite(text, 'README.md', root);
}

/** Converts a page for the site: names of other pages become links, and pictures follow the light or dark theme. */
function forSite(text, file, root) {
  const parts = text.split(/(^```[\s\S]*?^```$)/m);
  return parts.map((part) => (part.startsWith('```') ? part : linked(part, file, root))).join('');
}

function linked(text, file, root) {
  const target = (name) => {
    const [place, heading] = name.split('#');
    const found = [path.posix.join(path.posix.dirname(file), place), place].find((one) =>
      Object.values(PARTS).flat().includes(one),
    );
    return found === undefined
      ? null
      : { found, link: `/${addressOf(found)}${heading === undefined ? '' : `#${heading}`}` };
  };
  return (
    text
      .replaceAll(/<!--(?! README)[\s\S]*?-->\n*/g, '')
      .replaceAll(
        /(?:\[(?<words>[^\]]*)\]\((?<place>[\w./-]+\.md(?:#[\w-]+)?)\))|`(?<name>[\w./-]+\.md)`/g,
        (all, ...rest) => {
          const { words, place, name } = rest.at(-1);
          const to = target(place ?? name);
          if (to === null || to.found === file) return all;
          // The site has no file names, so a link with one shows the title of the page.
          const isFile = words === undefined || /\.md`?$/.test(words);
          return `[${isFile ? titleOf(to.found, root) : words}](${to.link})`;
        },
      )
      // Files of the repository that are not pages have no address on the site: their links become plain text.
      .replaceAll(/(?<!!)\[([^\]]+)\]\((?!https?:|#|\/)([\w./-]+)\)/g, '$1')
      .replaceAll(
        /<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]+)" src="([^"]+)">\s*<\/picture>/g,
        pictures,
      )
      .replaceAll(/(!\[[^\]]*\]\()[\w./-]+\/([\w-]+\.(?:png|svg)\))/g, '$1/pictures/$2')
      .replaceAll(/(!\[[^\]]*\]\()pictures\/(steps\/[\w-]+\.webp\))/g, '$1/pictures/$2')
  );
}

function pictures(_all, dark, alt, light) {
  const shown = (place, scheme) => `<img class="${scheme}" alt="${alt}" src="/pictures/${path.basename(place)}">`;
  return `${shown(light, 'only-light')}\n${shown(dark, 'only-dark')}`;
}
