import { totalOf } from './total.js';

/** The values of several arrays, one after the other, in an array of the class `Values`. It has its own buffer. */
export function joined<Values extends Uint8Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Float64Array<ArrayBuffer>>(
  arrays: readonly ArrayLike<number>[],
  Values: new (length: number) => Values,
): Values {
  const whole = new Values(totalOf(arrays, ({ length }) => length));
  let at = 0;
  for (const values of arrays) {
    whole.set(values, at);
    at += values.length;
  }
  return whole;
}
