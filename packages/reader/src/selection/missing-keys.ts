import { OptionError, optionName, sentence } from '@shardtool/base';

/** Throws {@link OptionError} that names the first of `missing`: keys that an option lists and no sample of `where` has. */
export function refuseMissingKeys(option: string, missing: ReadonlySet<string>, where: string): void {
  const [key] = missing;
  if (key === undefined) return;
  const message =
    missing.size === 1
      ? sentence`${optionName(option)}: ${where} has no sample with the key "${key}": correct it, or remove it from the list.`
      : sentence`${optionName(option)}: ${where} has no samples with ${missing.size} of the keys, such as "${key}": correct them, or remove them from the list.`;
  throw new OptionError({ key }, message);
}
