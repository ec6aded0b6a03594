import type { AnyCommand } from '../command.js';
import { isFamily } from '../command.js';

/** `shardtool pack [options] <source> <output>`. */
export function usageOf(name: string, command: AnyCommand): string {
  if (isFamily(command)) return `shardtool ${name} <command> [options]`;
  const words = Object.entries(command.arguments).map(([argument, { demandOption, array }]) => {
    const shown = `${argument}${array === true ? '...' : ''}`;
    return demandOption === true ? `<${shown}>` : `[${shown}]`;
  });
  return ['shardtool', name, ...words, '[options]'].join(' ');
}
