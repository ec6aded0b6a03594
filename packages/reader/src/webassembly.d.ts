/**
 * The part of the WebAssembly JavaScript API that the reader uses (W3C, "WebAssembly JavaScript Interface"): TypeScript has
 * it in the library for browsers alone. All memories here are shared.
 */
declare namespace WebAssembly {
  class Memory {
    /** Sizes in pages of 64 KiB. */
    constructor(descriptor: { initial: number; maximum: number; shared: true });
    readonly buffer: SharedArrayBuffer;
  }

  class Module {
    constructor(bytes: Uint8Array);
  }

  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, Memory>>);
    readonly exports: Record<string, unknown>;
  }
}
