/**
 * How often what is random, killed or raced is done in place of once: `npm run test:long` sets SHARDTOOL_TIMES, so that
 * `npm test` stays short.
 */
export const TIMES = Number(process.env.SHARDTOOL_TIMES ?? 1);

/** Under another version of Node all is done for the second time: a third as often shows whether it works there. */
const SHARE = process.env.SHARDTOOL_LANE === 'node' ? 1 / 3 : 1;

/** How often what `npm test` does `count` times is done in this run: once at least. */
export function often(count: number): number {
  return Math.ceil(count * TIMES * SHARE);
}
