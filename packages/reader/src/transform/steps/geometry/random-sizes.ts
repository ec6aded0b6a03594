/** Steps that resize to a random size. */
import { asSize, LARGEST_SIDE, resizedSize, roundHalfEven } from '../../crops.js';
import { checkResizing, drawFilter, RESIZING, widestFilter } from '../../parameters/interpolation.js';
import { PART_OR_0, PROBABILITY, RANGE, SIDE, SIDES, SIZE, SWITCH } from '../../parameters/kinds.js';
import { defaulted, needed, optional } from '../../parameters/parameter.js';
import { drawOne, integerBelow, uniform } from '../../random.js';
import { step } from '../step.js';

const LIKE_RESIZE = 'within 2 levels of Pillow if JPEGs are decoded whole (see below)';
const ANY_SIZE = { width: LARGEST_SIDE, height: LARGEST_SIDE };

/** Draws one random number for the size, then the filter (v2.RandomShortestSize `make_params`). */
export const randomShortestSize = step(
  'randomShortestSize',
  {
    help: 'Resizes the shorter side to a size from a list, keeping the aspect ratio.',
    like: 'RandomShortestSize',
    tolerance: LIKE_RESIZE,
    parameters: {
      minSize: needed(SIDES, 'Sizes of the shorter side to draw from.'),
      maxSize: optional(SIDE, 'Limit for the longer side.'),
      ...RESIZING,
    },
  },
  {
    check: checkResizing,
    widestFilter,
    draw: (step, canvas, random) => {
      const { width, height } = canvas.size;
      const wanted = drawOne(step.minSize, random) / Math.min(width, height);
      const factor = Math.min(wanted, (step.maxSize ?? Number.POSITIVE_INFINITY) / Math.max(width, height));
      const size = { width: atLeast1(Math.trunc(width * factor)), height: atLeast1(Math.trunc(height * factor)) };
      canvas.resize(size, drawFilter(step, random));
    },
    shape: () => null,
    largest: () => ANY_SIZE,
    resizesTo: ({ minSize, maxSize }) => (maxSize === undefined ? minSize : [...minSize, maxSize]),
  },
);

/** Draws one random number for the size, then the filter (v2.RandomResize `make_params`). */
export const randomResize = step(
  'randomResize',
  {
    help: 'Resizes the shorter side to a random size, keeping the aspect ratio.',
    like: 'RandomResize',
    tolerance: LIKE_RESIZE,
    parameters: {
      minSize: needed(SIDE, 'Smallest size of the shorter side.'),
      maxSize: needed(SIDE, 'The sizes are less than this.'),
      ...RESIZING,
    },
  },
  {
    check: (step) =>
      step.minSize < step.maxSize ? checkResizing(step) : { path: 'maxSize', message: 'must be more than minSize' },
    widestFilter,
    draw: (step, canvas, random) => {
      const size = step.minSize + integerBelow(step.maxSize - step.minSize, random);
      canvas.resize(resizedSize(canvas.size, size, undefined), drawFilter(step, random));
    },
    shape: () => null,
    largest: () => ANY_SIZE,
    resizesTo: ({ maxSize }) => [maxSize],
  },
);

/**
 * Draws one random number for the probability of each random part that is set, and one for the part if it applies: the scale, then the
 * aspect ratio; then the filter (timm `ResizeKeepRatio.get_params`).
 */
export const resizeKeepRatio = step(
  'resizeKeepRatio',
  {
    help: "Resizes the image to fit size, keeping the aspect ratio (timm's ResizeKeepRatio).",
    like: null,
    tolerance: LIKE_RESIZE,
    parameters: {
      size: needed(SIZE, 'Size to fit.'),
      longest: defaulted(
        PART_OR_0,
        0,
        '0: the image covers size. 1: it fits into size. Between them: the weighted mean of both ratios.',
      ),
      randomScaleProb: defaulted(PROBABILITY, 0, 'Probability of a random scale.'),
      randomScaleRange: defaulted(RANGE, [0.85, 1.05], 'Range of the random scale.'),
      randomScaleArea: defaulted(
        SWITCH,
        false,
        'Whether the random scale refers to the area of the image instead of its sides. A scale below 1 enlarges.',
      ),
      randomAspectProb: defaulted(PROBABILITY, 0, 'Probability of a random aspect ratio.'),
      randomAspectRange: defaulted(RANGE, [0.9, 1.11], 'Range of the factor of the aspect ratio.'),
      ...RESIZING,
    },
  },
  {
    check: checkResizing,
    widestFilter,
    draw: (step, canvas, random) => {
      const { width, height } = canvas.size;
      const target = asSize(step.size);
      const ratios = [height / target.height, width / target.width];
      const ratio = Math.max(...ratios) * step.longest + Math.min(...ratios) * (1 - step.longest);
      const scales = step.randomScaleProb > 0 && random.next() < step.randomScaleProb;
      const drawn = scales ? uniform(step.randomScaleRange, random) : 1;
      const scale = scales && step.randomScaleArea ? 1 / Math.sqrt(drawn) : drawn;
      const stretches = step.randomAspectProb > 0 && random.next() < step.randomAspectProb;
      const [low, high] = step.randomAspectRange;
      const aspect = stretches ? Math.sqrt(Math.exp(uniform([Math.log(low), Math.log(high)], random))) : 1;
      const size = {
        width: atLeast1(roundHalfEven((width * scale * aspect) / ratio)),
        height: atLeast1(roundHalfEven((height * (scale / aspect)) / ratio)),
      };
      canvas.resize(size, drawFilter(step, random));
    },
    shape: () => null,
    largest: () => ANY_SIZE,
  },
);

function atLeast1(pixels: number): number {
  return Math.max(1, pixels);
}
