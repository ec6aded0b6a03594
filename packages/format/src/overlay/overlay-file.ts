import { createHash } from 'node:crypto';
import { VersionError } from '@shardtool/base';
import { jsonText } from '../sample/exact-json.js';
import type { ColumnValue } from '../shard-index/shard-index.js';
import { OverlayError } from './overlay-error.js';
import { PackedChanges } from './packed-changes.js';

/** The folder of a dataset that holds its overlays, each as NAME.jsonl. */
export const OVERLAYS_FOLDER = 'overlays';
/** The version of overlays with {@link PackedChanges}. All others are of version 1, which earlier builds can read. */
export const OVERLAY_VERSION = 2;

/** Characters that are encoded at once. */
const PIECE = 1 << 20;

/** The position of a sample: the number of its shard in the dataset, and its row in that shard's index. */
export type RowPlace = readonly [shard: number, row: number];

/** A class of an overlay, and the numbers of the classes below the overlay that are merged into it. */
export interface OverlayClass {
  readonly name: string;
  readonly from: readonly number[];
}

/**
 * One change. Class numbers refer to the overlay's own list, except `was`: the class below the overlay (-1: none), so
 * that the samples of each class are known without an index.
 */
export type OverlayEntry =
  /** The new list of all classes of the dataset. If present, it is the first entry. */
  | { readonly classes: readonly OverlayClass[] }
  | { readonly exclude: RowPlace; readonly key: string; readonly was: number }
  | { readonly cls: number; readonly at: RowPlace; readonly key: string; readonly was: number }
  | {
      readonly set: readonly (readonly [column: string, value: ColumnValue])[];
      readonly at: RowPlace;
      readonly key: string;
    }
  /** Only the rows named by the {@link KeptRowsEntry} entries that follow are kept. */
  | { readonly kept: number; readonly classSamples: readonly number[] }
  | KeptRowsEntry
  | SplitEntry
  | SplitRowsEntry
  /** All changes in a shard. An overlay has one for each shard, or lines for single samples. */
  | PackedChanges
  | ChangedEntry;

/** Totals of all {@link PackedChanges} of an overlay, its last entry. */
export interface ChangedEntry {
  readonly changed: { readonly excluded: number; readonly relabelled: number; readonly set: number };
  /** Names of the columns that are set. */
  readonly columns: readonly string[];
  /** By how much the numbers of samples of classes change, by the overlay's own numbers of classes. */
  readonly classSamples: readonly ClassChange[];
  /** The same for each split below the overlay. */
  readonly splits: readonly (readonly [name: string, changes: readonly ClassChange[]])[];
}

export type ClassChange = readonly [cls: number, change: number];

/** The kept rows of one shard, as bits like those of {@link SplitRowsEntry}. */
export interface KeptRowsEntry {
  readonly keep: number;
  readonly rows: string;
}

/** How a split was drawn. Its rows follow. */
export interface SplitEntry {
  readonly split: string;
  readonly samples: number;
  readonly classSamples: readonly number[];
  readonly rule: SplitRule;
}

/** A sample is in the split if the hash of its key, or of the value of a column, is at least `from` and less than `below`. */
export interface SplitRule {
  /** The column whose equal values stay in one split; null: each key is drawn alone. */
  readonly group: string | null;
  /** Bounds for every class, or one pair for all. As fractions of 2^32. */
  readonly byClass: boolean;
  readonly borders: readonly (readonly [name: string | null, from: number, below: number])[];
}

/** The rows of one shard that are in a split: bit `row & 7` of byte `row >> 3`, in base64. */
export interface SplitRowsEntry {
  readonly split: string;
  readonly shard: number;
  readonly rows: string;
}

export interface OverlayHeader {
  readonly name: string;
  /** The overlay below this one, by name and hash; null: the dataset itself. */
  readonly parent: { readonly name: string; readonly hash: string } | null;
  /** Identity of the first `shards` shards of the dataset, those that existed when the overlay was made. */
  readonly dataset: string;
  readonly shards: number;
  /** A description of the change, for people. */
  readonly note: string;
  /** Hashes that this overlay had before it followed changes of the shards; absent if there were none. */
  readonly follows?: readonly string[] | undefined;
  /** Whether the changes are {@link PackedChanges}. Default: false. */
  readonly isPacked?: boolean | undefined;
}

/** A whole overlay. */
export interface Overlay extends OverlayHeader {
  /** Parsed again on each iteration, so that a million entries need little memory. */
  readonly entries: Iterable<OverlayEntry>;
  /** sha256 of all lines of the file except the last. Because the header names the parent's hash, this covers the whole chain. */
  readonly hash: string;
}

/** One change as a line of the file. */
export function overlayLine(entry: OverlayEntry): string {
  if (entry instanceof PackedChanges) return entry.text;
  return 'set' in entry ? jsonText(entry) : JSON.stringify(entry);
}

/** Encodes an overlay: JSON Lines, the header first, the hash last. Equal overlays give equal bytes. */
export class OverlayEncoder {
  #text: string;
  readonly #pieces: Buffer[] = [];
  readonly #hash = createHash('sha256');

  constructor({ name, parent, dataset, shards, note, follows, isPacked = false }: OverlayHeader) {
    const header = { overlay: name, version: isPacked ? OVERLAY_VERSION : 1, parent, dataset, shards, note, follows };
    this.#text = `${JSON.stringify(header)}\n`;
  }

  add(entry: OverlayEntry): void {
    this.#text += `${overlayLine(entry)}\n`;
    if (this.#text.length >= PIECE) this.#encode();
  }

  /** Returns the bytes in pieces, and the hash of the overlay. */
  finish(): { readonly pieces: readonly Uint8Array[]; readonly hash: string } {
    this.#encode();
    const hash = this.#hash.digest('hex');
    return { pieces: [...this.#pieces, Buffer.from(`${JSON.stringify({ sha256: hash })}\n`)], hash };
  }

  #encode(): void {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    this.#hash.update(piece);
    this.#pieces.push(piece);
  }
}

/**
 * The inverse of {@link OverlayEncoder}. `path` is for messages. Throws {@link OverlayError} if a byte has changed since
 * it was written, and {@link VersionError} if a newer version wrote it.
 */
export function parseOverlay(bytes: Uint8Array, path: string): Overlay {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lastLine = text.lastIndexOf(10, text.length - 2) + 1;
  const hash = createHash('sha256').update(text.subarray(0, lastLine)).digest('hex');
  if (text.toString('utf8', lastLine) !== `${JSON.stringify({ sha256: hash })}\n`) {
    throw new OverlayError(
      { path },
      `${path} is not an overlay, or has changed since it was written; restore it, or create it again with "shardtool overlay add".`,
    );
  }
  const headerEnd = text.indexOf(10);
  const {
    overlay: name,
    version,
    parent,
    dataset,
    shards,
    note,
    follows,
  } = JSON.parse(text.toString('utf8', 0, headerEnd));
  if (version > OVERLAY_VERSION) {
    throw new VersionError(
      { path, found: version, known: OVERLAY_VERSION },
      `${path} is an overlay of version ${version}, but this shardtool reads version ${OVERLAY_VERSION}; update shardtool.`,
    );
  }
  const entries = { [Symbol.iterator]: () => linesOf(text.subarray(headerEnd + 1, lastLine)) };
  return {
    name,
    parent,
    dataset,
    shards,
    note,
    ...(follows !== undefined && { follows }),
    ...(version > 1 && { isPacked: true }),
    entries,
    hash,
  };
}

function* linesOf(text: Buffer): Generator<OverlayEntry> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf(10, from);
    const line = text.subarray(from, end);
    yield PackedChanges.isLine(line) ? PackedChanges.parse(line) : JSON.parse(line.toString('utf8'));
    from = end + 1;
  }
}
