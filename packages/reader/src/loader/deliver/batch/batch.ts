import type { StackedArray } from '@shardtool/format';
import type { BatchObjects } from '../../../annotations/record.js';
import type { FieldValue } from '../../../dataset/fields/field-values.js';
import type { PixelValues } from '../../../transform/pixel-values.js';
import type { Dtype } from '../../../transform/values.js';
import type { BatchCrop } from '../../ring/batch-facts.js';
import type { LabelValues } from './label-values.js';

/** One image of a `list` batch: bytes of the transform's dtype and layout, such as uint8 [height, width, 3]. */
export interface ImageArray {
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly height: number;
  readonly width: number;
}

/**
 * How a batch was mixed. Each row is `weight` times its own image and label, plus 1 - weight times the image and label
 * of another row. With mixup and cutmix, the other row is the previous one; for the first row it is the last one. With
 * timmMixup, it is row n - 1 - i. With mosaic, copyPaste and sequence, rows keep their own labels, and
 * `weights` have the share of the area that shows the own image; with sequence, the product of the weights of its mixes.
 */
export interface BatchMix {
  readonly name: 'mixup' | 'cutmix' | 'timmMixup' | 'mosaic' | 'copyPaste' | 'sequence';
  /** Weight of the first row, 0 to 1. All rows have the same, except with the modes pair and elem of timmMixup. */
  readonly weight: number;
  /** Weight of each row, float64 [n]. */
  readonly weights: Float64Array;
  /** Class numbers of the other rows, int32 [n]. */
  readonly otherLabels: Int32Array;
  /** Number of classes of {@link Batch.softLabels}. Null: it is not set. */
  readonly numClasses: number | null;
  readonly labelSmoothing: number;
}

/** The views of one group. */
export interface ViewArrays {
  /** Pixels with `dtype` and `shape`. float16 values are bytes, two per value. */
  readonly images: PixelValues;
  readonly dtype: Dtype;
  readonly layout: 'nhwc' | 'nchw';
  /** [count, n, height, width, channels] or [count, n, channels, height, width]. */
  readonly shape: readonly [number, number, number, number, number];
  /**
   * Random values of the steps that the option `draws` names, by the name of the step. For a crop: float32 [count, n,
   * 4] with x, y, width and height in pixels of the image. For a flip: float32 [count, n] with 1 or 0.
   */
  readonly draws: Readonly<Record<string, Float32Array>>;
}

/**
 * The fields of {@link BatchObjects}, all of them null without the option `annotations`. With the option `images`, only
 * `offsets` is set: row i has the images `offsets[i]` to `offsets[i + 1] - 1` of `images`.
 */
type Objects = { readonly [Part in keyof BatchObjects]: BatchObjects[Part] | null };

/** Possible contents of a batch. {@link ContentOf} selects the actual ones by the options. */
export interface BatchContent {
  readonly images: PixelValues | null;
  readonly dtype: Dtype | null;
  readonly shape: readonly [number, number, number, number] | null;
  readonly list: readonly ImageArray[] | null;
  readonly encoded: readonly Uint8Array[] | null;
}

/**
 * One batch. All of its arrays are yours to keep. With the option `reuse`, `images`, `extraImages`, `masks`,
 * `arrays` and `encoded` are views of memory that is overwritten: with `reuse: true` when the next batch is requested, with `reuse:
 * 'manual'` after {@link Batch.release}. The type of `images` follows from the loader's options.
 */
export interface Batch<Content extends BatchContent = BatchContent> extends Objects {
  readonly epoch: number;
  /** Number of the batch, counted from the start of the epoch or from the position at which the run resumed. */
  readonly index: number;
  /** Number of rows, called n below. */
  readonly size: number;
  /**
   * Pixels with `dtype` and `shape`. Null if images stay encoded or are a list. JavaScript has no arrays of float16, so
   * float16 values are bytes, two per value.
   */
  readonly images: Content['images'];
  readonly dtype: Content['dtype'];
  /**
   * [n, height, width, channels] or [n, channels, height, width]. With the option `images`, the first number is that of
   * all images, which may be 0.
   */
  readonly shape: Content['shape'];
  /** With the option `views`: the arrays of each group, by name. `images` is then the first view of the first group. */
  readonly views: Readonly<Record<string, ViewArrays>>;
  /** Pixels of further image fields by name, of the same dtype and shape; `extraImages` names them. */
  readonly extraImages: Readonly<Record<string, Exclude<Content['images'], null>>>;
  /** Values of masks by field name, uint8 [n, height, width]. */
  readonly masks: Readonly<Record<string, Uint8Array>>;
  /** With `collate: 'list'`: an array for each image. */
  readonly list: Content['list'];
  /** With `transform: 'raw'`: the encoded images. */
  readonly encoded: Content['encoded'];
  /** Class numbers, int32 [n]; -1 if a sample has no class. */
  readonly labels: Int32Array;
  /** Numbers of the option `labels`, float32 of the shape [n] or [n, k]; null without it. */
  readonly labelValues: LabelValues | null;
  /** The part of its image that each row shows, with the option `aspectBuckets`; otherwise null. */
  readonly crop: BatchCrop | null;
  /** How the images were mixed, with the option `mix`; otherwise null. */
  readonly mix: BatchMix | null;
  /** The share of each class, float32 [n, numClasses], with `numClasses` of the option `mix`; otherwise null. */
  readonly softLabels: Float32Array | null;
  /** 0 marks a row that does not count: a repeated row of a padded last batch, or a bad sample that was skipped. */
  readonly valid: Uint8Array;
  /** Index of each sample in its dataset. */
  readonly indices: Float64Array;
  /** The dataset of each sample, as an index in the list of a mixture, int32 [n]; null for a single dataset. */
  readonly datasetIndex: Int32Array | null;
  readonly keys: readonly string[];
  /**
   * Two random words per row, uint32 [n, 2], for generators of your own code. They depend only on seed, epoch, sample and how often
   * the sample occurred before in its epoch, so they are the same for any number of workers and ranks, and after a resume.
   */
  readonly rowSeeds: Uint32Array;
  /**
   * Without images: the `.npy` fields by name, each as one array of the shape [n, ...shape]. With `collate: 'list'` they
   * are in `fields`, an array for each sample.
   */
  readonly arrays: Readonly<Record<string, StackedArray>>;
  /** Values of the other requested fields and label columns, by name. Null if a sample has no value. */
  readonly fields: Readonly<Record<string, readonly (FieldValue | null)[]>>;
  /** With the option `reuse`: the memory of this batch may be filled again. Its arrays must not be used after that. */
  release(): void;
}
