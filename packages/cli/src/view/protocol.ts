/** Requests of the page and answers of the server. This file has only types; both sides are compiled with them. */

/** A column that the page can show as a histogram, filter and sort by. */
export interface ColumnInfo {
  readonly name: string;
  /** A column is `text` if it has too many different values for a histogram. Samples can still be sorted by it. */
  readonly kind: 'number' | 'category' | 'text';
  /** Number of different values of a category; 0 for other columns. */
  readonly names: number;
}

export interface DatasetInfo {
  readonly location: string;
  readonly format: string;
  readonly samples: number;
  readonly shards: number;
  /** Number of bytes of all shards. */
  readonly bytes: number;
  readonly classes: readonly string[];
  readonly columns: readonly ColumnInfo[];
  /** Columns that were not loaded because there are too many. `where` can use them. */
  readonly omitted: readonly string[];
  /** The command that measures the images, or null if their sizes are known. */
  readonly sizesFrom: string | null;
  /** The overlay that the dataset was opened with, on which marks build; null for none. */
  readonly overlay: string | null;
  /** A free name for the overlay of marks. */
  readonly overlayName: string;
  /** Number of samples whose columns are not read yet. The server has read all; the page of `--static` reads them on request. */
  readonly unread: number;
  /** True if there are so few samples that the page reads their columns without a request of the user. */
  readonly isSmall: boolean;
}

/** Numbers that are at least the first and below the second. */
export type Range = readonly [from: number, to: number];

/** Which samples are shown, in which order. Ranges and values are by column. A sample has to match all filters. */
export interface Query {
  /** An expression as for `--where`, or '' for none. */
  readonly where: string;
  readonly ranges: Readonly<Record<string, Range>>;
  /** Accepted values by category column. */
  readonly values: Readonly<Record<string, readonly string[]>>;
  readonly sort: { readonly column: string; readonly descending: boolean } | null;
}

/** A user's mark on a sample. */
export type Mark =
  | { readonly kind: 'wrong' }
  | { readonly kind: 'exclude' }
  | { readonly kind: 'class'; readonly name: string };

/** A cell of the grid. Strings are cut to 256 bytes. */
export interface Row {
  readonly index: number;
  readonly key: string;
  /** Null if the sample has no class. */
  readonly cls: string | null;
  /** Size as stored, in pixels; 0 if it is unknown. */
  readonly width: number;
  readonly height: number;
  /** Value of the column that is sorted by. Null if the sample has no value, or if nothing is sorted. */
  readonly value: number | string | null;
  readonly mark: Mark | null;
}

export interface Rows {
  /** Number of samples that the query selects. */
  readonly total: number;
  /** Position of the first row among them. */
  readonly from: number;
  readonly rows: readonly Row[];
}

/**
 * Number of samples of a bin or value: of all, and of those that the query selects without this column's own filter.
 */
export interface Count {
  readonly all: number;
  readonly selected: number;
}

export interface NumberHistogram {
  readonly kind: 'number';
  readonly column: string;
  readonly bins: readonly (Count & { readonly from: number; readonly to: number })[];
  /** Number of samples without a value. */
  readonly missing: Count;
}

export interface CategoryHistogram {
  readonly kind: 'category';
  readonly column: string;
  /** The most frequent values first. */
  readonly values: readonly (Count & { readonly value: string })[];
  /** Number of values that are not listed. */
  readonly more: number;
  readonly missing: Count;
}

export type Histogram = NumberHistogram | CategoryHistogram;

export interface FieldDetail {
  readonly name: string;
  readonly bytes: number;
  /** Offset in the shard, in bytes. */
  readonly offset: number;
  /** Checksum in the index, in hexadecimal. Null if the index has none. */
  readonly crc32: string | null;
  readonly isRight: boolean | null;
  /** The beginning of a text; null for other data. */
  readonly text: string | null;
}

/** A box in pixels of the image, with its polygons and points. */
export interface DrawnObject {
  readonly label: string | null;
  readonly box: readonly [left: number, top: number, right: number, bottom: number] | null;
  readonly polygons: readonly (readonly number[])[];
  readonly points: readonly (readonly [x: number, y: number])[];
}

/**
 * Objects of a transformed sample, in pixels of its picture. Width and height are 0 if the sample has no annotations.
 */
export interface ModelObjects {
  readonly width: number;
  readonly height: number;
  readonly objects: readonly DrawnObject[];
  /** Fields that are masks of the image. */
  readonly masks: readonly string[];
}

export interface SampleDetail {
  readonly index: number;
  readonly key: string;
  readonly cls: string | null;
  readonly source: string;
  readonly shard: string;
  /** Offset of the sample in its shard, in bytes. */
  readonly offset: number;
  readonly bytes: number;
  readonly width: number;
  readonly height: number;
  readonly orientation: number;
  readonly fields: readonly FieldDetail[];
  readonly columns: readonly (readonly [name: string, value: string | number | boolean | null])[];
  readonly exif: readonly (readonly [tag: string, value: string])[];
  /** Fields that are masks of the image. */
  readonly masks: readonly string[];
  readonly objects: readonly DrawnObject[];
  /** Faults of the sample's data, one sentence each. */
  readonly faults: readonly string[];
  readonly mark: Mark | null;
}

export interface MarkList {
  readonly marks: readonly { readonly index: number; readonly key: string; readonly mark: Mark }[];
  /** The overlay that was saved last. */
  readonly saved: SavedMarks | null;
}

export interface SavedMarks {
  /** Value for `--overlay`: a name, or a path if the overlay is not next to the shards. */
  readonly overlay: string;
  readonly file: string;
  readonly excluded: number;
  readonly relabelled: number;
  readonly wrong: number;
}

/** Body of an answer with a status of 400 or more. `column` is a column of the text of `where`, counted from 1. */
export interface Refusal {
  readonly message: string;
  readonly column?: number;
}
