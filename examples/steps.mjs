/** Steps of one's own, which run in the workers of a loader: `examples/masks.mjs` names them. */

/**
 * On the finished pixels of a sample: makes each darker or brighter by up to `options.range`. `random` gives the same numbers
 * in every run, whichever worker has the sample.
 *
 * @type {import('shardtool').PixelsStep}
 */
export function brighten(pixels, { random, options }) {
  const { range } = /** @type {{ range: number }} */ (options);
  const factor = 1 + range * (2 * random() - 1);
  // Values are rounded, and held to 0 to 255.
  const whole = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.length);
  for (let i = 0; i < whole.length; i++) whole[i] *= factor;
}

/**
 * On a whole batch: what the mask does not show becomes black.
 *
 * @type {import('shardtool').BatchStep}
 */
export function blackBehind({ images, masks }) {
  const mask = masks['fore.npy'];
  for (let i = 0; i < mask.length; i++) if (mask[i] === 0) images.fill(0, 3 * i, 3 * i + 3);
}
