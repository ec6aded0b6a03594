/** Converts the name of an option to its flag without dashes: `maxShardBytes` to `max-shard-bytes`. */
export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
