import { oneOf, SWITCH, THREE, THREE_POSITIVE } from '../parameters/kinds.js';
import { defaulted, needed } from '../parameters/parameter.js';
import { isFloat, type ValueSettings } from '../values.js';
import { step } from './step.js';

export const toDtype = step(
  'toDtype',
  {
    help: 'Sets the dtype of the batch. Floats have the shape [channels, height, width], unless layout changes it.',
    like: 'ToDtype',
    tolerance: 'equal',
    parameters: {
      dtype: needed(oneOf('uint8', 'float32', 'float16'), 'Dtype of the batch.'),
      scale: defaulted(
        SWITCH,
        false,
        'If true, floats range from 0 to 1 instead of 0 to 255. For uint16, 65535 becomes 1; for int16, 32767.',
      ),
    },
  },
  {
    settle: ({ dtype, scale }, values) => {
      if (dtype === 'float16' && values.dtype === 'float32') {
        values.dtype = 'float16';
        return;
      }
      const misplaced = checkNotAfterNormalize(values);
      if (misplaced !== undefined) return misplaced;
      if (dtype === 'uint8' && isFloat(values.dtype) && values.stored !== 'float32')
        return `cannot convert ${values.dtype} back to uint8`;
      if (dtype === 'uint8' && values.stored !== 'uint8')
        return `cannot convert ${values.stored} to uint8 without loss: remove the step, or decode to uint8`;
      if (dtype !== 'uint8' && !isFloat(values.dtype)) values.scaled = scale;
      values.dtype = dtype;
      return;
    },
  },
);

export const normalize = step(
  'normalize',
  {
    help: 'Computes (value - mean) / std per channel, of values from 0 to 1. Converts bytes to float32.',
    like: 'Normalize',
    tolerance: 'within 2e-7 of the range',
    parameters: {
      mean: needed(THREE, 'Mean of each channel.'),
      std: needed(THREE_POSITIVE, 'Standard deviation of each channel.'),
    },
  },
  {
    settle: ({ mean, std }, values) => {
      const misplaced = checkNotAfterNormalize(values);
      if (misplaced !== undefined) return misplaced;
      if (!isFloat(values.dtype)) values.dtype = 'float32';
      values.normalization = { mean, std };
      return;
    },
  },
);

export const layout = step(
  'layout',
  {
    help: 'Sets the memory layout of the batch. Default: nhwc for bytes, nchw for floats.',
    like: null,
    tolerance: 'equal',
    parameters: {
      layout: needed(oneOf('nhwc', 'nchw'), 'nhwc is [height, width, channels], nchw is [channels, height, width].'),
    },
  },
  {
    settle: (step, values) => {
      values.layout = step.layout;
      return undefined;
    },
  },
);

function checkNotAfterNormalize({ normalization, erasing }: ValueSettings): string | undefined {
  if (normalization !== null) return 'cannot come after normalize';
  return erasing.length > 0 ? 'cannot come after a randomErasing of finished values: move it before' : undefined;
}
