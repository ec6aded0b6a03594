import { createRequire } from 'node:module';

let loaded: unknown;

/**
 * Calls into shared libraries through koffi, of which only the native part for this platform is installed. Throws if it
 * is not installed. The caller supplies the type, so that users of this package do not need koffi's types.
 */
export function nativeCalls<Koffi>(): Koffi {
  loaded ??= createRequire(import.meta.url)(`@koromix/koffi-${process.platform}-${process.arch}`);
  return loaded as Koffi;
}
