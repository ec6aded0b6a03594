/**
 * How many times tests with random inputs, kills and races repeat their work. `npm run test:long` sets SHARDTOOL_TIMES, so that
 * `npm test` stays short.
 */
export const TIMES = Number(process.env.SHARDTOOL_TIMES ?? 1);
