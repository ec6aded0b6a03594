/** Random numbers with other distributions than the uniform one. */
import { total } from '@shardtool/base';
import type { Random } from './random.js';

/** Draws from the distribution Beta(alpha, alpha). */
export function beta(alpha: number, random: Random): number {
  if (alpha === 1) return random.next();
  if (alpha > 1) {
    const a = gamma(alpha, random);
    return a / (a + gamma(alpha, random));
  }
  // A gamma variable with a shape below 1 is one with shape + 1, times a power of a uniform number.
  const a = { base: gamma(alpha + 1, random), uniform: positive(random) };
  const b = { base: gamma(alpha + 1, random), uniform: positive(random) };
  const [first, second] = [a, b].map(({ base, uniform }) => base * uniform ** (1 / alpha)) as [number, number];
  if (first + second > 0) return first / (first + second);
  // With a small alpha, both powers are too small for a float64. Their ratio is not, so it is computed from the
  // logarithms.
  const ratio = (b.base / a.base) * Math.exp((Math.log(b.uniform) - Math.log(a.uniform)) / alpha);
  return 1 / (1 + ratio);
}

/** Draws from a gamma distribution with a shape of at least 1. Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. */
function gamma(shape: number, random: Random): number {
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (let attempt = 0; attempt < 1000; attempt++) {
    const deviate = normal(0, 1, random);
    const v = (1 + c * deviate) ** 3;
    if (v > 0 && Math.log(positive(random)) < 0.5 * deviate * deviate + d - d * v + d * Math.log(v)) return d * v;
  }
  return d;
}

/** Draws weights that add up to 1, from the symmetric Dirichlet distribution. */
export function dirichlet(alpha: number, count: number, random: Random): number[] {
  const parts = Array.from({ length: count }, () =>
    alpha >= 1 ? gamma(alpha, random) : gamma(alpha + 1, random) * positive(random) ** (1 / alpha),
  );
  const sum = total(parts);
  return parts.map((part) => (sum > 0 ? part / sum : 1 / count));
}

/** Draws from the normal distribution. Takes two random numbers. */
export function normal(mean: number, deviation: number, random: Random): number {
  return mean + deviation * Math.sqrt(-2 * Math.log(positive(random))) * Math.cos(2 * Math.PI * random.next());
}

/** Draws a number above 0, up to 1. */
function positive(random: Random): number {
  return 1 - random.next();
}
