/**
 * Merges the files of several runs of run.mjs (`--out`) into one table.
 *
 *   node bench/peers/merge.mjs [--publish] [--most-others 0.1] FILE...
 *
 * --most-others drops runs during which other programs took a larger share of the CPU time.
 */
import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { mergeReports, publish, summarise, toMarkdown } from './report.mjs';

const { values, positionals } = parseArgs({
  options: { 'most-others': { type: 'string', default: '1' }, publish: { type: 'boolean', default: false } },
  allowPositionals: true,
});
if (positionals.length === 0) throw new Error('Pass the files that run.mjs wrote with --out.');
const report = mergeReports(
  positionals.map((file) => JSON.parse(fs.readFileSync(file, 'utf8'))),
  Number(values['most-others']),
);
const table = { ...report, rows: summarise(report) };
console.log(toMarkdown(table));
if (values.publish) publish(table);
