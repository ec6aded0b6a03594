/** The bill of materials of the packages in these folders of a checkout, as text. */
export function bill(checkout: string, names: readonly string[]): string;
