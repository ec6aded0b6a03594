/** Types of the images of a batch, derived from the options of its loader. */
import type { PixelValues } from '../../../transform/pixel-values.js';
import type { StepInput } from '../../../transform/step-inputs.js';
import type { Dtype } from '../../../transform/values.js';
import type { LoaderOptions } from '../../options.js';
import type { BatchContent, ImageArray } from './batch.js';

/** Value of an option, or undefined if it was omitted. */
type Given<Options, Name extends keyof LoaderOptions> = Name extends keyof Options ? Options[Name] : undefined;

/** Type of the values after a step, as `valuesOf` in transform.ts computes them. */
type Behind<Step, Before> = Step extends { readonly name: 'toDtype'; readonly dtype: infer Wanted }
  ? Wanted
  : Step extends { readonly name: 'normalize' }
    ? Before extends 'uint8' | 'uint16' | 'int16'
      ? 'float32'
      : Before
    : Before;

/** Dtypes that the step toDtype can produce. */
type Asked = 'uint8' | 'float32' | 'float16';

/**
 * Type of the values after a list of steps. If the compiler does not know the list, any type that steps can produce.
 */
type LastOf<Steps, Before = 'uint8'> = Steps extends readonly [infer First, ...infer Rest]
  ? LastOf<Rest, Behind<First, Before>>
  : Steps extends readonly []
    ? Before
    : Before | Asked;

type DtypeBy<Transform, Collate, Stored> = Transform extends 'raw'
  ? null
  : Collate extends 'list'
    ? null
    : Transform extends readonly unknown[]
      ? LastOf<Transform, Stored>
      : Stored;

type PixelsBy<Values, Memory extends ArrayBufferLike> = Values extends null
  ? null
  : Values extends 'float32'
    ? Float32Array<Memory>
    : Values extends 'uint16'
      ? Uint16Array<Memory>
      : Values extends 'int16'
        ? Int16Array<Memory>
        : Uint8Array<Memory>;
type ShapeBy<Values> = Values extends null ? null : readonly [number, number, number, number];
type ListBy<Transform, Collate> = Transform extends 'raw'
  ? null
  : Collate extends 'list'
    ? readonly ImageArray[]
    : null;
type EncodedBy<Transform, Memory extends ArrayBufferLike> = Transform extends 'raw'
  ? readonly Uint8Array<Memory>[]
  : null;

/** Memory of images, by the option `reuse`: without it, the memory is the batch's own. Otherwise it may be shared by threads. */
type MemoryBy<Reuse> = Reuse extends false | undefined ? ArrayBuffer : ArrayBufferLike;

/** Content of a batch, by the options `transform`, `collate`, `pixelDtype` and `reuse`. */
export interface ContentBy<Transform, Collate, Stored = 'uint8', Memory extends ArrayBufferLike = ArrayBufferLike> {
  readonly dtype: DtypeBy<Transform, Collate, Stored> & (Dtype | null);
  readonly images: PixelsBy<DtypeBy<Transform, Collate, Stored>, Memory>;
  readonly shape: ShapeBy<DtypeBy<Transform, Collate, Stored>>;
  readonly list: ListBy<Transform, Collate>;
  readonly encoded: EncodedBy<Transform, Memory>;
}

/** Images are the first view. */
export interface ContentOfViews<Memory extends ArrayBufferLike = ArrayBufferLike> extends BatchContent {
  readonly dtype: Dtype;
  readonly images: PixelValues<Memory>;
  readonly shape: readonly [number, number, number, number];
  readonly list: null;
  readonly encoded: null;
}
/** Batches of fields only. */
export interface ContentOfFields {
  readonly dtype: null;
  readonly images: null;
  readonly shape: null;
  readonly list: null;
  readonly encoded: null;
}
/** The dtype of decoded values, by the option `pixelDtype`. */
type StoredBy<Pixels> = Pixels extends Dtype ? Pixels : 'uint8';

/** Contents of the batches of a loader with these options. */
export type ContentOf<Options> = Options extends { readonly views: object }
  ? ContentOfViews<MemoryBy<Given<Options, 'reuse'>>>
  : Options extends { readonly image: false }
    ? ContentOfFields
    : ContentBy<
        Given<Options, 'transform'>,
        Given<Options, 'collate'>,
        StoredBy<Given<Options, 'pixelDtype'>>,
        MemoryBy<Given<Options, 'reuse'>>
      >;

/** Names of the properties of the step with this name. */
type PropertiesOf<Name> = StepInput extends infer Step
  ? Step extends { readonly name: infer Own }
    ? Name extends Own
      ? keyof Step
      : never
    : never
  : never;

/** A step whose unknown properties are a type error. */
type OnlyProperties<Step> = Step extends { readonly name: infer Name }
  ? { readonly [Key in keyof Step]: Key extends PropertiesOf<Name> ? OnlyWithin<Key, Step[Key]> : never }
  : Step;

/** The value of a property: `transforms` has steps, or lists of them. */
type OnlyWithin<Key, Value> = Key extends 'transforms' ? OnlySteps<Value> : Value;

/** A step, or a list of steps. The type of any step is left as it is. */
type OnlySteps<Steps> = [StepInput] extends [Steps]
  ? Steps
  : Steps extends readonly unknown[]
    ? { readonly [Index in keyof Steps]: OnlySteps<Steps[Index]> }
    : OnlyProperties<Steps>;

/**
 * Unknown names of options, and unknown properties of the steps of `transform`, are a type error, as for a type without
 * parameters.
 */
export type OnlyOptions<Options> = Options & {
  readonly [Name in Exclude<keyof Options, keyof LoaderOptions | 'device'>]: never;
} & (Options extends { readonly transform: infer Transform } ? { readonly transform: OnlySteps<Transform> } : unknown);
