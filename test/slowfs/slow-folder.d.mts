/** A folder that is mounted. */
export interface SlowFolder {
  readonly path: string;
  /** Every call hangs from now on. */
  stop(): void;
  goOn(): void;
  unmount(): Promise<{ readsAtOnce: number }>;
}

export function buildSlowfs(folder: string): string | null;
export function mountSlow(binary: string, folder: string, lookupUs: number, readUs: number): Promise<SlowFolder | null>;
