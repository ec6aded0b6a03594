import type { Mark } from '../../src/view/protocol.js';
import { shown } from '../text.js';

const NAMES: Record<Mark['kind'], string> = { wrong: 'wrong', exclude: 'left out', class: 'class' };

/** Returns a mark in one or two words. */
export function markText(mark: Mark): string {
  return mark.kind === 'class' ? `class: ${shown(mark.name)}` : NAMES[mark.kind];
}
