import type { ValuesUnderWay } from '../values.js';
import { oneOf, SWITCH, THREE, THREE_POSITIVE } from './kinds.js';
import { defaulted, needed, step } from './step.js';

export const toDtype = step(
  'toDtype',
  {
    help: 'Says what values become. Floats come as [3, height, width], unless layout says otherwise.',
    like: 'ToDtype',
    tolerance: 'equal',
    parameters: {
      dtype: needed(oneOf('uint8', 'float32', 'float16'), 'The dtype of the batch.'),
      scale: defaulted(SWITCH, false, 'True: floats from 0 to 1 instead of 0 to 255.'),
    },
  },
  {
    settle: ({ dtype, scale }, values) => {
      if (dtype === 'float16' && values.dtype === 'float32') {
        values.dtype = 'float16';
        return;
      }
      const misplaced = behindNormalize(values);
      if (misplaced !== undefined) return misplaced;
      if (dtype === 'uint8' && values.dtype !== 'uint8') return `cannot turn ${values.dtype} back into uint8`;
      if (dtype !== 'uint8' && values.dtype === 'uint8') values.scaled = scale;
      values.dtype = dtype;
      return;
    },
  },
);

export const normalize = step(
  'normalize',
  {
    help: '(value - mean) / std, channel by channel, of values from 0 to 1; makes float32 of bytes.',
    like: 'Normalize',
    tolerance: 'within 2e-7 of the range',
    parameters: {
      mean: needed(THREE, 'Of red, green and blue.'),
      std: needed(THREE_POSITIVE, 'Of red, green and blue.'),
    },
  },
  {
    settle: ({ mean, std }, values) => {
      const misplaced = behindNormalize(values);
      if (misplaced !== undefined) return misplaced;
      if (values.dtype === 'uint8') values.dtype = 'float32';
      values.normalization = { mean, std };
      return;
    },
  },
);

export const layout = step(
  'layout',
  {
    help: 'Says how values lie. Default: nhwc for bytes, nchw for floats.',
    like: null,
    tolerance: 'equal',
    parameters: { layout: needed(oneOf('nhwc', 'nchw'), '[height, width, 3] or [3, height, width].') },
  },
  {
    settle: (step, values) => {
      values.layout = step.layout;
      return undefined;
    },
  },
);

function behindNormalize({ normalization, erasing }: ValuesUnderWay): string | undefined {
  if (normalization !== null) return 'cannot come after normalize';
  return erasing.length > 0 ? 'cannot come after a randomErasing of values: put it before' : undefined;
}
