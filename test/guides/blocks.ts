import { readdirSync, readFileSync } from 'node:fs';

/** A code block of a page. */
export interface Block {
  /** `README.md:12`. */
  readonly place: string;
  readonly page: string;
  readonly language: string;
  readonly text: string;
  /** Why it is not run, from a comment `<!-- not run: ... -->` before it; null if it is run. */
  readonly notRun: string | null;
}

/** Pages for users. bench/README.md describes how figures were measured, on machines that others do not have. */
export const PAGES = [
  'README.md',
  'python/README.md',
  'docs/for-agents/SKILL.md',
  ...readdirSync('docs').map((file) => `docs/${file}`),
  ...readdirSync('packages').map((name) => `packages/${name}/README.md`),
].filter((page) => page.endsWith('.md'));

const BLOCK = /(?:<!-- not run: (?<why>.+?) -->\n+)?^```(?<language>[^\n]*)\n(?<text>[\s\S]*?)^```$/gm;

export function blocksOf(page: string): Block[] {
  const all = readFileSync(page, 'utf8');
  return Array.from(all.matchAll(BLOCK), ({ groups, index }) => {
    const { why, language, text } = groups as { why?: string; language: string; text: string };
    const line = all.slice(0, index).split('\n').length;
    return { place: `${page}:${line}`, page, language, text, notRun: why ?? null };
  });
}
