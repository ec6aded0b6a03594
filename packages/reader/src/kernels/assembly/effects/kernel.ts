// What is done to pixels that are there already: bytes of RGB, 3 a pixel, rows without gaps. No function has state or
// memory of its own, so that any number of instances share one memory.
//
// Buffers are followed by SLACK bytes that may be read and, in the target, written.
export { blur } from './blur';
export { scaleBytes, graySum, saturate } from './colour';
export { fillRows } from './fill';
export { makeFloats } from './floats';
export { turnHue } from './hue';
export { lookUpWords } from './look-up';
export { copyRows, mixBytes, mixFloats } from './mix';
export { rotateBilinear, rotateNearest } from './rotate';
