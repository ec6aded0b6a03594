import { cutTo, widthOf } from './columns.js';

/** Progress of some work. */
export interface Progress {
  readonly stage: string;
  readonly done: number;
  /** 0 while it is unknown. */
  readonly total: number;
  /** Texts next to the bar, the most important first. If the line is too long, the last ones are omitted. */
  readonly parts: readonly string[];
}

const LONGEST_BAR = 24;
/** Minimum length of the bar. A shorter bar is less useful than text in its place. */
const SHORTEST_BAR = 8;

/**
 * One line of at most this number of columns: a bar in plain characters, with as many texts next to it as fit. If the line is too
 * long, the bar is shortened first. Then texts are omitted, the last ones first, and finally the bar.
 */
export function progressLine({ stage, done, total, parts }: Progress, columns: number): string {
  for (let kept = parts.length; kept > 0; kept--) {
    const text = parts.slice(0, kept).join(', ');
    const room = Math.min(LONGEST_BAR, columns - widthOf(`${stage} [] ${text}`));
    if (room < SHORTEST_BAR) continue;
    const full = total <= 0 ? 0 : Math.round(Math.min(1, done / total) * room);
    return `${stage} [${'='.repeat(full)}${' '.repeat(room - full)}] ${text}`;
  }
  return cutTo(`${stage} ${parts[0] ?? ''}`, columns);
}
