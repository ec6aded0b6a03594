import { abortable, OptionError } from '@shardtool/base';
import { StoredDataset } from '../dataset/stored-dataset.js';
import { findParts, type OpenOptions } from '../open/find-parts.js';
import { WebDataset } from './web-dataset.js';

/** Options of {@link openDataset} in a browser: those of Node that need no files and no credentials. */
export type WebOpenOptions = Pick<
  OpenOptions,
  'overlay' | 'split' | 'version' | 'layout' | 'excludeKeys' | 'maxSampleBytes' | 'signal'
>;

/**
 * Opens a dataset by its URL: a folder that `shardtool pack` wrote, a shard, a pattern with braces, or a list of shards. A relative
 * URL is relative to the page. Shards are read by range requests. If the server is not that of the page, it must allow the
 * page to read (CORS); otherwise this throws FileError, which names the headers that are missing. Throws OptionError for another
 * scheme than http and https, and the errors of `openDataset` in Node.
 *
 * ```js
 * const dataset = await openDataset('https://example.org/shards');
 * for (const index of (await dataset.where('class = "cat"')).slice(0, 10)) {
 *   canvas.drawImage(await dataset.image(index), 0, 0);
 * }
 * ```
 */
export async function openDataset(
  location: string | URL | readonly (string | URL)[],
  options: WebOpenOptions = {},
): Promise<WebDataset> {
  const locations = Array.isArray(location)
    ? (location as readonly (string | URL)[]).map(absolute)
    : absolute(location as string | URL);
  return abortable(
    options.signal,
    async () => new WebDataset(new StoredDataset(await findParts(locations, options))),
    (dataset) => dataset.close(),
  );
}

/** Resolves a URL against that of the page. Braces of patterns stay. Throws {@link OptionError}. */
function absolute(given: string | URL): string {
  const base = (globalThis as { readonly location?: { readonly href: string } }).location?.href;
  const text = String(given);
  const isPossible = (typeof given === 'string' || given instanceof URL) && text !== '' && URL.canParse(text, base);
  if (!isPossible || !/^https?:$/.test(new URL(text, base).protocol)) {
    throw new OptionError(
      { path: text },
      `${text === '' ? 'An empty text' : text} cannot be opened in a browser: give a URL that begins with https:// or http://.`,
    );
  }
  // A URL object would escape braces.
  return /^https?:/i.test(text) ? text : new URL(text, base).href.replaceAll('%7B', '{').replaceAll('%7D', '}');
}
