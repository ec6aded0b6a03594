import type { Mark } from '../../src/view/protocol.js';
import { shown } from '../text.js';

const NAMES: Record<Mark['kind'], string> = { wrong: 'wrong', exclude: 'left out', class: 'class' };

/** What a mark says, in a word or two. */
export function markText(mark: Mark): string {
  return mark.kind === 'class' ? `class: ${shown(mark.name)}` : NAMES[mark.kind];
}
