/**
 * How often what is random, killed or raced is done in place of once: `npm run test:long` sets SHARDTOOL_TIMES, so that
 * `npm test` stays short.
 */
export const TIMES = Number(process.env.SHARDTOOL_TIMES ?? 1);
