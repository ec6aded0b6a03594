import { OptionError } from '@shardtool/base';
import type { MemoryPlan } from './slots.js';

/**
 * The batch slots that no batch occupies. With a slot file this list outlives the engine: batches that the consumer still holds
 * keep their slots, and the next engine, whose slots are the same memory, leaves those alone.
 */
export class FreeSlots {
  #free: number[] = [];
  /** Slots of delivered batches that were not released yet. */
  readonly #held = new Set<number>();
  #plan: Pick<MemoryPlan, 'slots' | 'slotBytes'> = { slots: 0, slotBytes: 0 };
  #onFreed: () => void = () => {};

  /** An engine starts: all of its slots are free, except those of batches that are still held. `onFreed` is told of each that is released. */
  begin(plan: MemoryPlan, onFreed: () => void): void {
    const isSame = plan.slots === this.#plan.slots && plan.slotBytes === this.#plan.slotBytes;
    if (!isSame && this.#held.size > 0) {
      throw new OptionError({}, 'Batches of another loader are held in this slot file: release them first.');
    }
    this.#plan = plan;
    this.#onFreed = onFreed;
    // The first slot is taken first.
    this.#free = Array.from({ length: plan.slots }, (_, i) => plan.slots - 1 - i).filter(
      (slot) => !this.#held.has(slot),
    );
  }

  get isEmpty(): boolean {
    return this.#free.length === 0;
  }

  take(): number | null {
    return this.#free.pop() ?? null;
  }

  /** The batch in this slot was delivered: the slot stays its own until {@link free}. */
  hold(slot: number): void {
    this.#held.add(slot);
  }

  free(slot: number): void {
    this.#held.delete(slot);
    this.#free.push(slot);
    this.#onFreed();
  }
}
