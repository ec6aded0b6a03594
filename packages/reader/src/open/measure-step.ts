import { crc32 } from '@shardtool/base';
import { imageKindOf } from '@shardtool/format';
import { jpegStructure } from '../codec/jpeg/jpeg-structure.js';
import { measure, NOT_WHOLE, putMeasured } from '../inspect/measure.js';
import type { FieldsStep, PixelsStep } from '../loader/setup/custom-steps.js';

/** The stored image of the current sample. A worker handles one image at a time. */
const stored = { crc32: 0, bytes: 0, isWhole: true };

export const fields: FieldsStep = (given) => {
  const { image } = given;
  stored.crc32 = crc32(image!);
  stored.bytes = image!.length;
  stored.isWhole = imageKindOf(image!) !== 'jpeg' || jpegStructure(image!).ended;
  return given;
};

export const pixels: PixelsStep = (values, { warnings }) => {
  const row = values as Uint8Array;
  putMeasured(row, { ...stored, ...measure(row), warnings: stored.isWhole || warnings === 0 ? warnings : NOT_WHOLE });
  return undefined;
};
