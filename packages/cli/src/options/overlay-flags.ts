import type { FlagSpec } from '../command.js';

/** `--parent` of commands that write an overlay. */
export const PARENT_FLAG = {
  type: 'string',
  requiresArg: true,
  group: 'Output',
  placeholder: 'NAME',
  describe: 'Overlay that the new overlay is applied on top of',
} as const satisfies FlagSpec;

/** `--name` of commands that write an overlay under a usual name. */
export function overlayNameFlag<const Name extends string>(name: Name) {
  return {
    type: 'string',
    requiresArg: true,
    default: name as string,
    group: 'Output',
    placeholder: 'NAME',
    describe: 'Name of the overlay to write',
  } as const satisfies FlagSpec;
}
