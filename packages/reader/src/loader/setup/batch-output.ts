import type { Size } from '../../codec/codec.js';
import type { Dtype } from '../../transform/values.js';
import type { ViewLayout } from '../../views/slot-layout.js';
import type { RaggedImages } from './ragged-images.js';

/** The form of the images of a batch: pixels of one shape, a list, encoded bytes, or no images. */
export type BatchOutput =
  | {
      readonly kind: 'pixels';
      /** The sizes of batches, by number. If all batches have the same size, there is one. */
      readonly sizes: readonly Size[];
      readonly channels: number;
      readonly dtype: Dtype;
      readonly layout: 'nhwc' | 'nchw';
      /** Layout of the views of each image, including the images themselves. Null without views. */
      readonly views: ViewLayout | null;
      /** The images of each sample, if their number varies. Null if each sample has one. */
      readonly ragged: RaggedImages | null;
    }
  | { readonly kind: 'list' }
  | { readonly kind: 'raw' }
  | { readonly kind: 'fields' };
