import { type MemoryPlan, slotAddress, WASM_PAGE_BYTES } from './slots.js';

type Layout = Pick<MemoryPlan, 'slots' | 'slotBytes' | 'base'>;

/** The slot of a batch that was delivered and not released yet. */
export interface HeldSlot {
  readonly slot: number;
  readonly layout: Layout;
}

const NO_SLOTS: Layout = { slots: 0, slotBytes: 0, base: 0 };

/**
 * The batch slots that no batch occupies. With a slot file, this list outlives the engine: batches that the consumer
 * still holds keep their bytes, and the next engine, whose slots are in the same file, does not use their slots. If its
 * slots have another size, they are in another part of the file.
 */
export class FreeSlots {
  #free: number[] = [];
  readonly #held = new Set<HeldSlot>();
  #layout = NO_SLOTS;
  #onFreed: () => void = () => {};

  /**
   * Returns the offset of the slots of the next engine. It is 0, unless batches that are still held occupy that memory.
   */
  place({ slots, slotBytes }: Omit<Layout, 'base'>): number {
    if (this.#held.size === 0) return 0;
    if (slots === this.#layout.slots && slotBytes === this.#layout.slotBytes) return this.#layout.base;
    const from = Math.min(...Array.from(this.#held, ({ slot, layout }) => slotAddress(layout, slot)));
    const to = Math.max(...Array.from(this.#held, ({ slot, layout }) => slotAddress(layout, slot + 1)));
    const bytes = slotAddress({ slotBytes, base: 0 }, slots);
    return bytes <= from ? 0 : Math.ceil(to / WASM_PAGE_BYTES) * WASM_PAGE_BYTES;
  }

  /**
   * Starts an engine. All of its slots are free, except those of batches that are still held. `onFreed` is called for
   * each slot that is released.
   */
  begin({ slots, slotBytes, base }: Layout, onFreed: () => void): void {
    this.#layout = { slots, slotBytes, base };
    this.#onFreed = onFreed;
    const taken = new Set(Array.from(this.#held).flatMap((held) => (this.#isHere(held) ? [held.slot] : [])));
    // The last entry is taken next, so the first slot comes last in this list.
    this.#free = Array.from({ length: slots }, (_, i) => slots - 1 - i).filter((slot) => !taken.has(slot));
  }

  get isEmpty(): boolean {
    return this.#free.length === 0;
  }

  take(): number | null {
    return this.#free.pop() ?? null;
  }

  /** Called when the batch in this slot was delivered. The batch keeps the slot until {@link free}. */
  hold(slot: number): HeldSlot {
    const held = { slot, layout: this.#layout };
    this.#held.add(held);
    return held;
  }

  free(held: HeldSlot): void {
    this.#held.delete(held);
    if (this.#isHere(held)) this.#free.push(held.slot);
    this.#onFreed();
  }

  /** Whether it is one of the current slots. Slots of earlier engines are not. */
  #isHere({ layout }: HeldSlot): boolean {
    const { slots, slotBytes, base } = this.#layout;
    return layout.slots === slots && layout.slotBytes === slotBytes && layout.base === base;
  }
}
