/** Which steps work on images that are not 8-bit RGB. */
import { codeName, OptionError, sentence } from '@shardtool/base';
import type { PixelFormat } from '../codec/pixel-format.js';
import { entryOf, everyStep, type Step } from './parse-steps.js';
import { fits } from './values.js';

/** Effects that move pixels, and so do not depend on the meaning of their values. */
const MOVES: ReadonlySet<string> = new Set(['randomRotation', 'randomRotate90', 'randomAffine', 'randomErasing']);

/** Parameters with a value per channel. */
const PER_CHANNEL = ['fill', 'value', 'mean', 'std'];

/** Throws {@link OptionError} for a step that needs 8-bit RGB, and for a list of values with another length than `channels`. */
export function checkWideSteps(steps: readonly Step[], format: PixelFormat, place: string): void {
  steps.forEach((outer, i) => {
    for (const step of everyStep([outer])) {
      const reason = refusal(step, format);
      if (reason !== undefined)
        throw new OptionError({}, sentence`Step ${i + 1} of ${place}, ${codeName(step.name)}, ${reason}.`);
    }
  });
}

function refusal(step: Step, { channels, dtype }: PixelFormat): string | undefined {
  const images = `images have ${channels} ${channels === 1 ? 'channel' : 'channels'} of ${dtype}`;
  if (entryOf(step).isEffect === true && !MOVES.has(step.name))
    return `works on 8-bit RGB only, and ${images}: remove the step, or decode to 8-bit RGB`;
  if ('interpolation' in step && step.interpolation === 'bicubic')
    return `has the interpolation bicubic, which works on 8-bit RGB only, and ${images}: choose bilinear or nearest`;
  if (step.name === 'randomErasing' && step.mode === 'rand' && channels !== 3)
    return `has the mode rand, which draws red, green and blue, and ${images}: choose another mode`;
  const parameters = step as unknown as Readonly<Record<string, unknown>>;
  for (const name of PER_CHANNEL) {
    const values = parameters[name];
    const all = typeof values === 'number' ? [values] : Array.isArray(values) ? (values as number[]) : [];
    if (Array.isArray(values) && values.length !== channels && values.length !== 1)
      return `has ${values.length} values as ${name}, and ${images}: give one value, or ${channels}`;
    if (name === 'fill' && !all.every((value) => fits(value, dtype)))
      return `has the ${name} ${JSON.stringify(values)}, which ${dtype} cannot hold`;
  }
  return undefined;
}
