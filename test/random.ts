/** Seed of all random cases: the same in every run, so that a failure can be repeated. SHARDTOOL_SEED tries other cases. */
export const SEED = Number(process.env.SHARDTOOL_SEED ?? 2026);

/** A generator of numbers in [0, 1), mulberry32. `name` gives each test a different sequence. */
export function randomOf(name: string): () => number {
  let state = SEED;
  for (const character of name) state = Math.imul(state ^ character.codePointAt(0)!, 0x9e3779b1);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
