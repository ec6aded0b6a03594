import { BYTE } from './kinds.js';
import { optional } from './parameter.js';

export const MASK_FILL = optional(BYTE, 'Value of the added pixels in masks. Default: 0.');
