/** Of these files, those that have the length of another one: only they can have the same bytes. */
export function filesOfEqualSize(files: Uint32Array, bytes: Float64Array): Uint32Array {
  const sizes = Float64Array.from(files, (file) => bytes[file]!).sort();
  const isShared = (size: number): boolean => {
    let low = 0;
    let high = sizes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sizes[middle]! < size) low = middle + 1;
      else high = middle;
    }
    return sizes[low + 1] === size;
  };
  // Empty files are bad, and so are those that could not be measured: packing says why.
  return files.filter((file) => bytes[file]! > 0 && isShared(bytes[file]!));
}
