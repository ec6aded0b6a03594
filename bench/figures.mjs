/** What a bench found, for other programs: a line of JSON each in the file that SHARDTOOL_FIGURES names, if it names one. */
import { appendFileSync } from 'node:fs';

/** So many a second, or a ratio: more is better. */
export function rate(name, value) {
  note({ name, value, isRate: true });
}

/** Time or memory: less is better. */
export function cost(name, value) {
  note({ name, value, isRate: false });
}

function note(figure) {
  const file = process.env.SHARDTOOL_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(figure)}\n`);
}
