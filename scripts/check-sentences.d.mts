/** Faults of the text of a source file, as `line: what`. With `hasFlags`, flags of the command line are allowed. */
export function faultsOf(source: string, options?: { readonly hasFlags?: boolean }): string[];
