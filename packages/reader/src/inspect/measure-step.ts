import { crc32 } from '@shardtool/base';
import type { FieldsStep, PixelsStep } from '../loader/work/custom-steps.js';
import { measure, putMeasured } from './measure.js';

/** A worker has one image at a time. */
const stored = { crc32: 0, bytes: 0 };

export const fields: FieldsStep = (given) => {
  const { image } = given;
  stored.crc32 = crc32(image!);
  stored.bytes = image!.length;
  return given;
};

export const pixels: PixelsStep = (values, { warnings }) => {
  const row = values as Uint8Array;
  putMeasured(row, { ...stored, ...measure(row), warnings });
  return undefined;
};
