import { createRequire } from 'node:module';

let loaded: unknown;

/**
 * Calls into shared libraries: koffi, of which only the native part of this platform is installed. Throws where there is none.
 * The caller names its type, so that users of this package need no types of koffi.
 */
export function nativeCalls<Koffi>(): Koffi {
  loaded ??= createRequire(import.meta.url)(`@koromix/koffi-${process.platform}-${process.arch}`);
  return loaded as Koffi;
}
