/** Which bytes of a file an answer holds, and how long the file is. */
export interface ContentRange {
  readonly from: number;
  /** Behind the last. */
  readonly to: number;
  readonly size: number;
}

/** Reads a `Content-Range` (RFC 9110, 14.4): `bytes 0-99/1000`. Null where it is missing, or the size is not told. */
export function parseContentRange(header: string | undefined): ContentRange | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(header ?? '');
  if (match === null) return null;
  const [from, last, size] = match.slice(1).map(Number) as [number, number, number];
  return last < from || last >= size ? null : { from, to: last + 1, size };
}
