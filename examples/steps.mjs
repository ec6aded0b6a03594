/** Custom steps, which run in the workers of a loader. `examples/masks.mjs` uses them. */

/**
 * Makes a sample darker or brighter by up to `options.range`. `random` returns the same numbers in every run, whichever worker
 * has the sample.
 *
 * @type {import('shardtool').PixelsStep}
 */
export function brighten(pixels, { random, options }) {
  const { range } = /** @type {{ range: number }} */ (options);
  const factor = 1 + range * (2 * random() - 1);
  // Values are rounded, and clamped to 0 to 255.
  const whole = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.length);
  for (let i = 0; i < whole.length; i++) whole[i] *= factor;
}

/**
 * Makes all pixels of a batch that the masks do not show black.
 *
 * @type {import('shardtool').BatchStep}
 */
export function blackBehind({ images, masks }) {
  const mask = masks['fore.npy'];
  for (let i = 0; i < mask.length; i++) if (mask[i] === 0) images.fill(0, 3 * i, 3 * i + 3);
}
