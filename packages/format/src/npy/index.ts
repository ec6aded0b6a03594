export { type NpyArray, readNpy } from './array.js';
export { encodeNpyHeader, isNpy, type NpyHeader, npyValuesOffset, readNpyHeader } from './header.js';
export { encodeNpyImage, isBytes, NPY_FIELD, type NpyImage, probeNpyImage, readNpyImage } from './image.js';
export {
  describeNpyRow,
  isSameNpyRow,
  type NpyRow,
  NpyRowCopier,
  npyRowBytes,
  npyRowOf,
  npyRowValues,
  OtherNpyRow,
  type StackedArray,
} from './rows.js';
