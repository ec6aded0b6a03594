/** Only the server of `view` decodes images itself. */
export function isReadBySharp(): boolean {
  return false;
}

/** The page of `view --static` shows no masks. */
export function masksOf(): readonly string[] {
  return [];
}
