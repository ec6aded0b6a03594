import { BYTE } from './kinds.js';
import { optional } from './step.js';

export const MASK_FILL = optional(BYTE, 'What masks have there. Default 0.');
