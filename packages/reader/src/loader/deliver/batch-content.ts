/** What the images of a batch are, by the options of its loader: types alone. */
import type { Dtype } from '../../transform/values.js';
import type { LoaderOptions } from '../options.js';
import type { BatchContent, ImageArray } from './batch.js';

/** What an option was given; undefined where it was left out. */
type Given<Options, Name extends keyof LoaderOptions> = Name extends keyof Options ? Options[Name] : undefined;

/** Values behind a step: as `valuesOf` of transform.ts has it. */
type Behind<Step, Before> = Step extends { readonly name: 'toDtype'; readonly dtype: infer Asked }
  ? Asked
  : Step extends { readonly name: 'normalize' }
    ? Before extends 'uint8'
      ? 'float32'
      : Before
    : Before;

/** Values that a list of steps ends with; any, where the list is not known step by step. */
type LastOf<Steps, Before = 'uint8'> = Steps extends readonly [infer First, ...infer Rest]
  ? LastOf<Rest, Behind<First, Before>>
  : Steps extends readonly []
    ? Before
    : Dtype;

type DtypeBy<Transform, Collate> = Transform extends 'raw'
  ? null
  : Collate extends 'list'
    ? null
    : Transform extends readonly unknown[]
      ? LastOf<Transform>
      : 'uint8';

type PixelsBy<Values> = Values extends null ? null : Values extends 'float32' ? Float32Array : Uint8Array;
type ShapeBy<Values> = Values extends null ? null : readonly [number, number, number, number];
type ListBy<Transform, Collate> = Transform extends 'raw'
  ? null
  : Collate extends 'list'
    ? readonly ImageArray[]
    : null;
type EncodedBy<Transform> = Transform extends 'raw' ? readonly Uint8Array[] : null;

/** Content of a batch, by the options `transform` and `collate`. */
export interface ContentBy<Transform, Collate> {
  readonly dtype: DtypeBy<Transform, Collate> & (Dtype | null);
  readonly images: PixelsBy<DtypeBy<Transform, Collate>>;
  readonly shape: ShapeBy<DtypeBy<Transform, Collate>>;
  readonly list: ListBy<Transform, Collate>;
  readonly encoded: EncodedBy<Transform>;
}

/** Images are the first view. */
export interface ContentOfViews extends BatchContent {
  readonly dtype: Dtype;
  readonly images: Uint8Array | Float32Array;
  readonly shape: readonly [number, number, number, number];
  readonly list: null;
  readonly encoded: null;
}
/** What is in the batches of a loader with such options. */
export type ContentOf<Options> = Options extends { readonly views: object }
  ? ContentOfViews
  : ContentBy<Given<Options, 'transform'>, Given<Options, 'collate'>>;

/** Options with a name that is none are an error where they are written, as for a type without parameters. */
export type OnlyOptions<Options> = Options & {
  readonly [Name in Exclude<keyof Options, keyof LoaderOptions | 'device'>]: never;
};
