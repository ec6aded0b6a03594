/**
 * WebAssembly memory that threads share. TypeScript knows `WebAssembly` only among a browser's declarations, so the declarations
 * that this package publishes do not name it.
 */
export interface KernelMemory {
  readonly buffer: SharedArrayBuffer;
}
