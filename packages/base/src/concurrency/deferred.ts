/** A promise that other code settles. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/** Makes a promise with its functions, like `Promise.withResolvers` of Node 22. */
export function deferred<T = void>(): Deferred<T> {
  let settle: Pick<Deferred<T>, 'resolve' | 'reject'>;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle! };
}
