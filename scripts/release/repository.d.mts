/** Writes the address of the repository into the packages of a checkout. `names`: the folders of the packages. */
export function nameRepository(checkout: string, names: readonly string[], url: string): void;
