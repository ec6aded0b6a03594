/** Figures of a bench for other programs. If SHARDTOOL_FIGURES names a file, each figure is written there as a line of JSON. */
import { appendFileSync } from 'node:fs';

/** A number per second, or a ratio: more is better. */
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
