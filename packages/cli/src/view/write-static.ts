/** Writes the page of `view --static`: one file that shows a dataset by its URL, from any web server. */
import { readFile } from 'node:fs/promises';
import { FileError, OptionError, option, sentence, writeAtomically } from '@shardtool/base';
import { shownLocation } from '@shardtool/storage';

/** Text near the beginning of every page that this command writes. */
const MARK = '<!-- written by shardtool view --static -->';
const PLACE = '<meta name="shardtool-dataset" content="">';

/**
 * Writes the page to `file`. `url` is the dataset that it shows if its address names none: a URL, or a path relative to the page.
 * A page that this command wrote before is replaced. Throws {@link FileError} for any other file that exists.
 */
export async function writeStatic(file: string, page: URL, url: string | undefined): Promise<void> {
  if (url !== undefined && /^(?!https?:)[a-z][a-z0-9+.-]*:/i.test(url)) {
    throw new OptionError(
      { path: url },
      sentence`A page cannot read ${url}: with ${option('static')}, give the https:// URL of the dataset, or its path relative to the page.`,
    );
  }
  if (url !== undefined && /^https?:\/\/[^/]*@/i.test(url)) {
    const path = shownLocation(url);
    throw new OptionError(
      { path },
      sentence`The page would contain the password of ${path}, for anyone who opens it: with ${option('static')}, give the URL without user and password.`,
    );
  }
  const known = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new FileError({ path: file }, `${file} cannot be written: give the name of a file, such as index.html.`, {
      cause: error,
    });
  });
  if (known !== null && !known.slice(0, 200).includes(MARK)) {
    const message = `${file} exists and is not a page of "shardtool view --static": move it away, or give another name.`;
    throw new FileError({ path: file }, message);
  }
  const text = await readFile(page, 'utf8');
  const given = PLACE.replace('content=""', () => `content="${escaped(url ?? '')}"`);
  await writeAtomically(file, Buffer.from(text.replace(PLACE, () => given)));
}

/** Escapes a text for an attribute of HTML. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}
