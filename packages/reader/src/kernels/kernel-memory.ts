/**
 * WebAssembly memory that threads share. The type `WebAssembly.Memory` exists only in TypeScript's declarations for browsers, so the
 * published declarations of this package do not use it.
 */
export interface KernelMemory {
  readonly buffer: SharedArrayBuffer;
}
