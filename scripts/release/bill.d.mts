/** The text of the bill of the packages of a checkout, by the names of their folders. */
export function bill(checkout: string, names: readonly string[]): string;
