/** What the page asks the server and what it is told: types alone, which both are compiled with. */

/** A column that the page can show as a histogram, filter and sort by. */
export interface ColumnInfo {
  readonly name: string;
  /** `text` has too many different values for a histogram; it can be sorted by. */
  readonly kind: 'number' | 'category' | 'text';
  /** How many different values a category has; 0 of others. */
  readonly names: number;
}

export interface DatasetInfo {
  readonly location: string;
  readonly format: string;
  readonly samples: number;
  readonly shards: number;
  /** Of all shards. */
  readonly bytes: number;
  readonly classes: readonly string[];
  readonly columns: readonly ColumnInfo[];
  /** Columns that are not kept, since there are too many; `where` knows them. */
  readonly omitted: readonly string[];
  /** The command that finds the sizes of the images, where nobody has looked at one yet; else null. */
  readonly sizesFrom: string | null;
  /** The overlay that the dataset is seen through, on which marks are laid; null for none. */
  readonly overlay: string | null;
  /** A name for the overlay of marks that nothing has yet. */
  readonly overlayName: string;
}

/** Numbers from the first on, and below the second. */
export type Range = readonly [from: number, to: number];

/** Which samples are shown, in which order. Ranges and values are by column; all that is given has to hold. */
export interface Query {
  /** An expression as `--where` takes it; '' for none. */
  readonly where: string;
  readonly ranges: Readonly<Record<string, Range>>;
  /** Values of category columns, of which one has to be there. */
  readonly values: Readonly<Record<string, readonly string[]>>;
  readonly sort: { readonly column: string; readonly descending: boolean } | null;
}

/** What a person says of a sample. */
export type Mark =
  | { readonly kind: 'wrong' }
  | { readonly kind: 'exclude' }
  | { readonly kind: 'class'; readonly name: string };

/** A cell of the grid. Strings are cut to 256 bytes. */
export interface Row {
  readonly number: number;
  readonly key: string;
  /** Null where it has none. */
  readonly cls: string | null;
  /** In pixels as stored; 0 where nobody has looked. */
  readonly width: number;
  readonly height: number;
  /** In the column that is sorted by; null where it lacks one, or nothing is sorted by. */
  readonly value: number | string | null;
  readonly mark: Mark | null;
}

export interface Rows {
  /** Samples that the query selects. */
  readonly total: number;
  /** Which of them the first row is. */
  readonly from: number;
  readonly rows: readonly Row[];
}

/** How many samples a bin or value has: of all, and of those that the query without this column's own filter selects. */
export interface Count {
  readonly all: number;
  readonly selected: number;
}

export interface NumberHistogram {
  readonly kind: 'number';
  readonly column: string;
  readonly bins: readonly (Count & { readonly from: number; readonly to: number })[];
  /** Samples without a value. */
  readonly missing: Count;
}

export interface CategoryHistogram {
  readonly kind: 'category';
  readonly column: string;
  /** The most frequent first. */
  readonly values: readonly (Count & { readonly value: string })[];
  /** Values that are not listed. */
  readonly more: number;
  readonly missing: Count;
}

export type Histogram = NumberHistogram | CategoryHistogram;

export interface FieldDetail {
  readonly name: string;
  readonly bytes: number;
  /** Where it lies in the shard. */
  readonly offset: number;
  /** As the index says it, in hexadecimal; null where nobody has summed it yet. */
  readonly crc32: string | null;
  readonly isRight: boolean | null;
  /** The beginning of what is text. */
  readonly text: string | null;
}

/** A box in pixels of the image, and the polygons and points that belong to it. */
export interface DrawnObject {
  readonly label: string | null;
  readonly box: readonly [left: number, top: number, right: number, bottom: number] | null;
  readonly polygons: readonly (readonly number[])[];
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** What lies on a transformed sample, in pixels of its picture; 0 pixels where nothing was packed with it. */
export interface ModelObjects {
  readonly width: number;
  readonly height: number;
  readonly objects: readonly DrawnObject[];
  /** Fields that are masks of the image. */
  readonly masks: readonly string[];
}

export interface SampleDetail {
  readonly number: number;
  readonly key: string;
  readonly cls: string | null;
  readonly source: string;
  readonly shard: string;
  /** Where the sample lies in its shard. */
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
  /** What of the sample could not be read, a sentence each. */
  readonly faults: readonly string[];
  readonly mark: Mark | null;
}

export interface MarkList {
  readonly marks: readonly { readonly number: number; readonly key: string; readonly mark: Mark }[];
  /** What was saved last. */
  readonly saved: SavedMarks | null;
}

export interface SavedMarks {
  /** As `--overlay` takes it: a name, or a path where it does not lie beside the shards. */
  readonly overlay: string;
  readonly file: string;
  readonly excluded: number;
  readonly relabelled: number;
  readonly wrong: number;
}

/** What comes with a status of 400 and above. `column` counts from 1 in the text of `where`. */
export interface Refusal {
  readonly message: string;
  readonly column?: number;
}
