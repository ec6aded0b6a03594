/** Paths of files, stored as one text with end offsets, and their sizes and times: 24 bytes per file plus the text. */
export interface FileTable {
  readonly count: number;
  /** UTF-8 of all paths, concatenated. Paths are relative to the source, with "/". */
  readonly text: Buffer;
  /** `ends[i]`: offset in `text` where path i ends. */
  readonly ends: Float64Array;
  /** Size of each file in bytes; -1 if it could not be measured. */
  readonly bytes: Float64Array;
  /** Modification time of each file, in milliseconds since 1970. */
  readonly mtimeMs: Float64Array;
}

/** Returns the path of file `index`, relative to the source. */
export function pathAt(files: FileTable, index: number): string {
  return files.text.toString('utf8', index === 0 ? 0 : files.ends[index - 1]!, files.ends[index]!);
}

/** Returns sorted strings without duplicates. */
export function withoutRepeats(sorted: string[]): string[] {
  return sorted.filter((path, i) => i === 0 || path !== sorted[i - 1]);
}
