import { readFileSync } from 'node:fs';

/** docs/format.md, whose programs and tables are checked against shardtool. */
export const page = readFileSync('docs/format.md', 'utf8');

/** The programs below headings of the page, as one. */
export function programOf(...headings: string[]): string {
  return headings
    .map((heading) => {
      const section = page.split(/^(?=##+ )/m).find((part) => part.replace(/^##+ /, '').startsWith(`${heading}\n`))!;
      return Array.from(section.matchAll(/```python\n(.*?)```/gs), ([, code]) => code!).join('\n');
    })
    .join('\n');
}

/** Prints the value of a Python expression for each input, as `x`. */
export const forEach = (program: string, expression: string) =>
  `${program}\nimport json, sys\nprint(json.dumps([${expression} for x in json.load(sys.stdin)]))`;

/** Datasets and states of an earlier build. */
export const earlier = 'test/fixtures/earlier';
