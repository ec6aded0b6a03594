import { option, sentence, warn } from '@shardtool/base';
import type { Batch } from './batch/batch.js';

/** Whether a row that counts has no class, its label being -1, and no labels of objects either. */
export function hasUnlabelled({ labels, valid, boxLabels }: Pick<Batch, 'labels' | 'valid' | 'boxLabels'>): boolean {
  if (boxLabels !== null) return false;
  let row = labels.indexOf(-1);
  while (row !== -1 && valid[row] === 0) row = labels.indexOf(-1, row + 1);
  return row !== -1;
}

/** Code of the warning in Node. */
const CODE = 'SHARDTOOL_NO_CLASS';

/** Warns once for each `loader` that delivers labels of -1. */
export function warnUnlabelled(batch: Batch, loader: object): void {
  if (warned.has(loader) || !hasUnlabelled(batch)) return;
  warned.add(loader);
  const row = batch.labels.findIndex((label, i) => label === -1 && batch.valid[i] !== 0);
  const message = sentence`Sample "${batch.keys[row]}" has no class, so its label is -1. To train on labels, pack with class folders or ${option('labels')}, or add classes with "shardtool relabel".`;
  warn(CODE, message);
}

const warned = new WeakSet<object>();
