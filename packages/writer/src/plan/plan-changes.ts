import { closeSync, openSync } from 'node:fs';
import { compareCodePoints, countOf } from '@shardtool/base';
import { pathAt } from '../source/file-table.js';
import { type PlanFacts, type PlanHeader, readShardPlan } from './plan-record.js';
import type { ShardPlan } from './shard-plan.js';

/**
 * Describes options that differ from those a pack was started with, as the end of "holds a pack that did not end, and";
 * null if none differ.
 */
export function changedOptions(was: PlanFacts['options'], is: PlanFacts['options']): string | null {
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])].sort();
  const changes = names.filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name])).map(describe);
  return changes.length === 0 ? null : changes.join(', and ');

  function describe(name: string): string {
    if (name === 'labels' && was.labels !== undefined && is.labels !== undefined)
      return 'its labels have changed since';
    return `its ${name} was ${valueText(was[name])} and is now ${valueText(is[name])}`;
  }
}

function valueText(value: unknown): string {
  if (value === undefined) return 'not set';
  if (value === Number.MAX_SAFE_INTEGER) return 'unlimited';
  return typeof value === 'string' && value !== '' && !value.startsWith('sharp') ? value : JSON.stringify(value);
}

/**
 * Describes how the files and classes of two plans with equal options differ. `planPath` is the record of the first
 * plan.
 */
export function changedSource(was: PlanHeader, planPath: string, is: PlanFacts, shards: Iterable<ShardPlan>): string {
  const changes = new FileChanges();
  const fd = openSync(planPath, 'r');
  try {
    for (const place of was.shards) changes.had(readShardPlan(fd, place, planPath));
  } finally {
    closeSync(fd);
  }
  for (const shard of shards) changes.has(shard);
  const files = changes.describe();
  if (files !== null) return files;
  const [before, now] = [was.classes.join(', '), is.classes.join(', ')];
  if (before !== now) return `its classes were ${before} and are now ${now}`;
  return 'the classes or labels of its samples have changed';
}

interface FileFacts {
  readonly bytes: number;
  readonly mtimeMs: number;
}

class FileChanges {
  readonly #had = new Map<string, FileFacts>();
  #count = 0;
  /** The first change, in the order of the paths. */
  #first: { readonly path: string; readonly what: string } | null = null;

  had(shard: ShardPlan): void {
    for (const [path, facts] of filesOf(shard)) this.#had.set(path, facts);
  }

  has(shard: ShardPlan): void {
    for (const [path, { bytes, mtimeMs }] of filesOf(shard)) {
      const before = this.#had.get(path);
      this.#had.delete(path);
      if (before === undefined) this.#note(path, 'is new');
      else if (before.bytes !== bytes) this.#note(path, `had ${sizeText(before.bytes)} and now has ${sizeText(bytes)}`);
      else if (before.mtimeMs !== mtimeMs) {
        this.#note(path, `has the modification time ${timeText(mtimeMs)} instead of ${timeText(before.mtimeMs)}`);
      }
    }
  }

  describe(): string | null {
    for (const path of this.#had.keys()) this.#note(path, 'is gone');
    this.#had.clear();
    if (this.#first === null) return null;
    const more = this.#count > 1 ? ` (${countOf(this.#count - 1, 'more file has', 'more files have')} changed)` : '';
    return `${this.#first.path} ${this.#first.what}${more}`;
  }

  #note(path: string, what: string): void {
    this.#count++;
    if (this.#first === null || compareCodePoints(path, this.#first.path) < 0) this.#first = { path, what };
  }
}

function* filesOf({ files }: ShardPlan): Generator<[string, FileFacts]> {
  for (let file = 0; file < files.count; file++) {
    yield [pathAt(files, file), { bytes: files.bytes[file]!, mtimeMs: files.mtimeMs[file]! }];
  }
}

function sizeText(bytes: number): string {
  return bytes === -1 ? 'no size (it could not be read)' : `${bytes.toLocaleString('en')} bytes`;
}

function timeText(mtimeMs: number): string {
  return new Date(mtimeMs).toISOString();
}
