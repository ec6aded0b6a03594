import { BYTE, oneOf } from './kinds.js';
import { defaulted, optional } from './parameter.js';

export const PADDING_MODE = defaulted(
  oneOf('constant', 'edge', 'reflect', 'symmetric'),
  'constant',
  'Values of the added pixels. constant: `fill`. edge: repeats the pixels of the edge. reflect: mirrors the image without repeating the edge. symmetric: mirrors the image and repeats the edge. Boxes need constant.',
);

/** Why annotations cannot follow a step with this padding. */
export function refuseMirrored(mode: string, option: 'masks' | 'annotations'): string | undefined {
  if (mode === 'constant' || option === 'masks') return undefined;
  return `has the paddingMode ${mode}, which repeats parts of the image without their annotations`;
}

export const MASK_FILL = optional(BYTE, 'Value of the added pixels in masks. Default: 0.');
