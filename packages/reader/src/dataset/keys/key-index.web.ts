/** A browser has no files, so it makes no key index. */
export class KeyIndex {
  readonly samples = 0;
}

export class IndexedKeys {}
