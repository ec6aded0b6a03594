import { OptionError, optionName, sentence } from '@shardtool/base';

/** WebAssembly memory ends here: addresses are 32 bits wide. */
const MEMORY_LIMIT_BYTES = 2 ** 32;
export const WASM_PAGE_BYTES = 65_536;
/** Gap between regions, in which tests detect writes beyond the end of a region. */
const GUARD_BYTES = 64;
/** A worker with less than this cannot decode an ordinary photo. */
const SMALLEST_SCRATCH_BYTES = 16 * 2 ** 20;

/** Bytes of one finished row: of the image, of each extra image, and of each mask. */
export interface RowBytes {
  readonly image: number;
  readonly extraFields: readonly number[];
}

/**
 * The memory that the WebAssembly kernels write: the batch slots, then a scratch region for each worker. All of it is
 * address space. Pages are allocated when they are first written.
 */
export interface MemoryPlan {
  /** Address of the first slot. It is 0, unless batches of earlier slots occupy that memory. */
  readonly base: number;
  readonly slots: number;
  /** Bytes of a full batch of the largest size: images, and extra fields after them. */
  readonly slotBytes: number;
  /** Length of a row for each batch size. */
  readonly rowBytes: readonly RowBytes[];
  /** Offsets in a slot of the rows of each extra image and mask. */
  readonly extraFields: readonly number[];
  readonly workers: number;
  readonly scratchBytes: number;
  readonly pages: number;
}

/**
 * Lays out the memory for the largest rows. `scratchBytes` is the maximum that a worker can use. Throws
 * {@link OptionError} if the slots leave too little memory for the workers.
 */
export function planMemory(options: {
  readonly slots: number;
  readonly rows: number;
  /** Length of a row for each batch size. */
  readonly rowBytes: readonly RowBytes[];
  readonly workers: number;
  readonly scratchBytes: number;
}): MemoryPlan {
  const { slots, rows, rowBytes, workers } = options;
  let slotBytes = rows * Math.max(...rowBytes.map(({ image }) => image));
  const extraFields = rowBytes[0]!.extraFields.map((_, i) => {
    const offset = aligned(slotBytes);
    slotBytes = offset + rows * Math.max(...rowBytes.map((one) => one.extraFields[i]!));
    return offset;
  });
  const slotTotal = slots * (aligned(slotBytes) + GUARD_BYTES);
  const share = Math.floor((MEMORY_LIMIT_BYTES - slotTotal) / workers) - GUARD_BYTES;
  const scratchBytes = Math.min(aligned(options.scratchBytes), Math.floor(share / 64) * 64);
  if (scratchBytes < Math.min(SMALLEST_SCRATCH_BYTES, options.scratchBytes)) {
    throw new OptionError(
      {},
      sentence`${slots} batch slots of ${slotBytes} bytes and the scratch of ${workers} workers do not fit the 4 GiB that WebAssembly can address: choose a smaller ${optionName('batchSize')}, fewer ${optionName('prefetchBatches')} or fewer workers.`,
    );
  }
  const total = slotTotal + workers * (scratchBytes + GUARD_BYTES);
  return {
    base: 0,
    slots,
    slotBytes,
    rowBytes,
    extraFields,
    workers,
    scratchBytes,
    pages: Math.ceil(total / WASM_PAGE_BYTES),
  };
}

/**
 * The same plan with its first slot at another address, a multiple of a page. Throws {@link OptionError} if they do not
 * fit into the memory.
 */
export function movedPlan(plan: MemoryPlan, base: number): MemoryPlan {
  const pages = plan.pages + (base - plan.base) / WASM_PAGE_BYTES;
  if (pages * WASM_PAGE_BYTES <= MEMORY_LIMIT_BYTES) return { ...plan, base, pages };
  throw new OptionError(
    {},
    sentence`Batches of another size are still in use, and together with the next batches they exceed the 4 GiB that WebAssembly can address: release them first, or choose a smaller ${optionName('batchSize')} or fewer ${optionName('prefetchBatches')}.`,
  );
}

/** Address of a slot's first byte. */
export function slotAddress(plan: Pick<MemoryPlan, 'base' | 'slotBytes'>, slot: number): number {
  return plan.base + slot * (aligned(plan.slotBytes) + GUARD_BYTES);
}

/** Address of a worker's scratch. */
export function scratchAddress(plan: MemoryPlan, worker: number): number {
  return slotAddress(plan, plan.slots) + worker * (plan.scratchBytes + GUARD_BYTES);
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / 64) * 64;
}
