/** AugMix's mixture of an image with the results of chains of effects on it. */
import type { Effect, EffectEntry } from '../../effects.js';

/** One chain: its effects, which keep the size, and the weight of its result. */
export interface Chain {
  readonly weight: number;
  readonly effects: readonly Effect[];
}

/**
 * The mixture is `own` times the image, plus the weighted results of the chains, truncated to bytes. The result is `part` of the
 * mixture and the rest of the image.
 */
export interface MixChainsEffect {
  readonly kind: 'mixChains';
  readonly own: number;
  readonly chains: readonly Chain[];
  readonly part: number;
}

/** Pictures that the effect needs in addition to its own: four for the float32 sums, and two for the effects of a chain. */
export const CHAIN_PICTURES = 6;

/** Why masks and annotations cannot follow it. */
export const MIXED_GEOMETRY =
  'mixes shifted and rotated copies of the image, which masks and annotations cannot follow';

export const mixChains: EffectEntry<MixChainsEffect> = {
  change: (picture, { own, chains, part }, tools) => {
    const { effects, scratch, runEffects } = tools;
    const values = picture.width * picture.height * 3;
    // Kernels also change up to 15 sums past the end.
    const sums = scratch.allocate(4 * (values + 16));
    scratch.memory.fill(0, sums, sums + 4 * values);
    effects.addWeighted(picture, own, sums);
    const copy = { ...picture, address: scratch.allocate(values + 64) };
    const spare = { ...picture, address: scratch.allocate(values + 64) };
    const used = scratch.mark();
    for (const { weight, effects: chain } of chains) {
      scratch.release(used);
      scratch.memory.copyWithin(copy.address, picture.address, picture.address + values);
      effects.addWeighted(runEffects(copy, chain, tools, spare), weight, sums);
    }
    effects.blendSums(picture, part, sums);
  },
};
