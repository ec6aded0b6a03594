import { didYouMean, OptionError } from '@shardtool/base';
import { type FormatOptions, formatOf, type PixelFormat, RGB } from '../../codec/pixel-format.js';
import { StateError } from '../../order/state.js';
import { compileSteps, compileTransform, type TransformInput } from '../../transform/transform.js';

/** A transform, and the epoch from which on it is used. */
export interface ScheduledTransform {
  readonly epoch: number;
  readonly transform: TransformInput;
}

const KEYS = ['epoch', 'transform'];

/** Checks the option `schedule`. Throws {@link OptionError} with the entry and the allowed values. */
export function checkSchedule(schedule: readonly ScheduledTransform[], format: PixelFormat = RGB): void {
  let before = -1;
  for (const [i, entry] of schedule.entries()) {
    const place = `schedule[${i}]`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
      throw new OptionError({}, `${place} is ${JSON.stringify(entry)}: write { epoch: 16, transform: [...] }.`);
    }
    const unknown = Object.keys(entry).find((key) => !KEYS.includes(key));
    if (unknown !== undefined) {
      const hint = didYouMean(unknown, KEYS) || ': it has epoch and transform.';
      throw new OptionError({}, `${place} has no "${unknown}"${hint}`);
    }
    const { epoch, transform } = entry;
    if (!Number.isInteger(epoch) || epoch <= before) {
      throw new OptionError(
        {},
        `${place} has the epoch ${JSON.stringify(epoch)}: epochs must be whole numbers in ascending order, from 0.`,
      );
    }
    checkScheduled(transform, place, format);
    before = epoch;
  }
}

/** Checks a transform that some epochs use. Throws {@link OptionError}. */
export function checkScheduled(transform: TransformInput | 'raw', place: string, format: PixelFormat = RGB): void {
  if (transform === undefined)
    throw new OptionError({}, `${place} has no transform: write { epoch: 16, transform: [...] }.`);
  if (transform === 'raw')
    throw new OptionError({}, `${place} is 'raw', but other epochs decode images: use steps instead.`);
  compileSteps(transform, { place, shared: [], format });
}

/** The transform of each epoch. A schedule is immutable; {@link with} returns another one. */
export class TransformSchedule {
  /** The different transforms. */
  readonly transforms: readonly (TransformInput | 'raw' | undefined)[];
  /** The meanings of the transforms, as text: see {@link meaningOf}. */
  readonly #meanings: string;
  readonly #format: PixelFormat;
  /** In ascending order of epochs, from 0: the index of the transform that is used from that epoch on. */
  readonly #entries: readonly { readonly epoch: number; readonly index: number }[];

  private constructor(
    entries: readonly { readonly epoch: number; readonly transform: TransformInput | 'raw' | undefined }[],
    format: PixelFormat,
  ) {
    this.#format = format;
    const transforms = new Map<
      string,
      { readonly index: number; readonly transform: TransformInput | 'raw' | undefined }
    >();
    this.#entries = entries.map(({ epoch, transform }) => {
      const name = meaningOf(transform, format);
      const known = transforms.get(name) ?? { index: transforms.size, transform };
      transforms.set(name, known);
      return { epoch, index: known.index };
    });
    this.transforms = [...transforms.values()].map(({ transform }) => transform);
    this.#meanings = [...transforms.keys()].join();
  }

  /**
   * The schedule of a loader with these options. A state names the transform of its epoch. Without a schedule, that
   * transform also applies to the epochs after it. Throws {@link StateError} if the schedule has another one for the
   * epoch of the state.
   */
  static of({
    transform,
    schedule,
    state,
    ...options
  }: {
    readonly transform: TransformInput | 'raw' | undefined;
    readonly schedule: readonly ScheduledTransform[] | undefined;
    readonly state: unknown;
  } & FormatOptions): TransformSchedule {
    const format = formatOf(options);
    const first = new TransformSchedule([{ epoch: 0, transform }, ...(schedule ?? [])].filter(isLast), format);
    const { epoch, transform: saved } = (state ?? {}) as {
      readonly epoch?: unknown;
      readonly transform?: TransformInput;
    };
    if (saved === undefined || typeof epoch !== 'number') return first;
    checkSaved(saved, format);
    if (meaningOf(first.at(epoch), format) === meaningOf(saved, format)) return first;
    if (schedule === undefined) return first.with(epoch, saved);
    throw new StateError(
      {},
      `The state was saved with another transform in epoch ${epoch} than the schedule has, which would change the pixels: use the same ` +
        'schedule, or start without a state.',
    );
  }

  /** The same schedule up to an epoch, and this transform from that epoch on. */
  with(epoch: number, transform: TransformInput): TransformSchedule {
    const before = this.#entries.filter((entry) => entry.epoch < epoch);
    const entries = before.map(({ epoch: from, index }) => ({ epoch: from, transform: this.transforms[index] }));
    return new TransformSchedule([...entries, { epoch, transform }], this.#format);
  }

  /** Whether every epoch has the same transform in both. */
  isLike(other: TransformSchedule): boolean {
    return JSON.stringify(this.#entries) === JSON.stringify(other.#entries) && this.hasTransformsOf(other);
  }

  /** Whether equal indices stand for the same transform in both. */
  hasTransformsOf(other: TransformSchedule): boolean {
    return this.#meanings === other.#meanings;
  }

  /** Whether all epochs have this transform, so that a state need not name it. */
  isAlways(transform: TransformInput | 'raw' | undefined): boolean {
    return this.#meanings === meaningOf(transform, this.#format);
  }

  /** The index of the transform of an epoch. */
  indexAt(epoch: number): number {
    return this.#entries.findLast((entry) => entry.epoch <= epoch)!.index;
  }

  at(epoch: number): TransformInput | 'raw' | undefined {
    return this.transforms[this.indexAt(epoch)];
  }
}

/** Returns a text that is equal for equivalent transforms, even if they are written in different ways. */
function meaningOf(transform: TransformInput | 'raw' | undefined, format: PixelFormat): string {
  return transform === 'raw' ? transform : JSON.stringify(compileTransform(transform ?? [], format));
}

/** Whether no later entry is for the same epoch. An entry for epoch 0 may replace the transform. */
function isLast({ epoch }: { readonly epoch: number }, i: number, all: readonly { readonly epoch: number }[]): boolean {
  return all[i + 1]?.epoch !== epoch;
}

/** Throws {@link StateError} if the transform of a state is not one that a loader saves. */
function checkSaved(transform: TransformInput, format: PixelFormat): void {
  try {
    checkScheduled(transform, 'the transform of the state', format);
  } catch (cause) {
    throw new StateError({}, `The transform of the state is damaged: ${(cause as Error).message}`, { cause });
  }
}
