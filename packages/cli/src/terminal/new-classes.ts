import { escapeControls } from '@shardtool/base/text';
import type { AddOverlayReport } from '@shardtool/reader';
import { countOf, formatCount } from './size.js';

const SHOWN = 10;

/** Lists the classes that are only in the labels, because a typing error makes a new class. No line if there are none. */
export function newClassLines({ newClasses }: Pick<AddOverlayReport, 'newClasses'>): string[] {
  if (newClasses.length === 0) return [];
  const names = newClasses
    .slice(0, SHOWN)
    .map(({ name, hint }) => `  "${escapeControls(name)}"${escapeControls(hint)}`);
  const more = newClasses.length - SHOWN;
  const rest = more > 0 ? [`  and ${formatCount(more)} more`] : [];
  return [`${countOf(newClasses.length, 'new class', 'new classes')}:`, ...names, ...rest];
}
