/** Types of the images of a batch, derived from the options of its loader. */
import type { Dtype } from '../../transform/values.js';
import type { LoaderOptions } from '../options.js';
import type { BatchContent, ImageArray } from './batch.js';

/** Value of an option, or undefined if it was omitted. */
type Given<Options, Name extends keyof LoaderOptions> = Name extends keyof Options ? Options[Name] : undefined;

/** Type of the values after a step, as in `valuesOf` of transform.ts. */
type Behind<Step, Before> = Step extends { readonly name: 'toDtype'; readonly dtype: infer Asked }
  ? Asked
  : Step extends { readonly name: 'normalize' }
    ? Before extends 'uint8'
      ? 'float32'
      : Before
    : Before;

/** Type of the values after a list of steps, or any if the steps are not known one by one. */
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
/** Contents of the batches of a loader with these options. */
export type ContentOf<Options> = Options extends { readonly views: object }
  ? ContentOfViews
  : ContentBy<Given<Options, 'transform'>, Given<Options, 'collate'>>;

/** Unknown names of options are a type error, as for a type without parameters. */
export type OnlyOptions<Options> = Options & {
  readonly [Name in Exclude<keyof Options, keyof LoaderOptions | 'device'>]: never;
};
