/** Keeps only the result for the last key. For large values that are requested many times in a row. */
export function rememberLast<T>(make: (key: number) => T): (key: number) => T {
  let last = -1;
  let made: T | undefined;
  return (key) => {
    if (made === undefined || key !== last) made = make(key);
    last = key;
    return made;
  };
}
