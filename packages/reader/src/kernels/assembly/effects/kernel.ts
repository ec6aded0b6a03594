// Effects on RGB bytes, 3 per pixel, in rows without gaps. The functions have no state, and the caller provides all memory, so any
// number of instances can share one memory.
//
// Buffers are followed by slack that may be read and, in targets, written: see PICTURE_SLACK_BYTES of kernels/effects.ts.
export { blur } from './blur';
export { boxBlur } from './box-blur';
export { scaleBytes, graySum, saturate } from './colour';
export { fillRows } from './fill';
export { makeFloats } from './floats';
export { shiftHue } from './hue';
export { lookUpHsv } from './hsv';
export { jpegArtifacts } from './jpeg';
export { lookUpWords } from './look-up';
export { addWeighted, blendSums, copyRows, mixBytes, mixFloats } from './mix';
export { addNoise } from './noise';
export { countBytes, invertBytes, lookUpBytes, maskBytes, permuteChannels, solarizeBytes } from './point';
export { mapPixels, rotateBilinear, rotateNearest, rotatePillowBilinear } from './rotate';
export { rotateBicubic } from './rotate-bicubic';
export { sharpen } from './sharpness';
