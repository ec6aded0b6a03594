import { OptionError, optionName, sentence } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import { formatOf, isRgb } from '../../codec/pixel-format.js';
import { compileTransform, type StepInput, type TransformInput } from '../../transform/transform.js';
import type { LoaderOptions } from '../options.js';
import type { Channels, DeviceDtype, DeviceLayout, DevicePlan, StreamHandle } from './device-batch.js';

/** The device of the batches, and the conversion of their values. */
export interface DeviceOptions {
  /** `cuda` or `cuda:N`. */
  readonly name: string;
  /** Default: the dtype at the end of the transform. */
  readonly dtype?: DeviceDtype;
  readonly layout?: DeviceLayout;
  /** Mean of each channel, for values from 0 to 1. Default: the values of the transform's `normalize`. */
  readonly mean?: Channels;
  readonly std?: Channels;
  /** Number of batches with memory on the device, including the one in use. Default: 3. */
  readonly slots?: number;
  /**
   * The CUstream that uses the batches. It waits until a batch is ready. The batch is released when the work that is
   * queued on the stream by then is finished. Default: the default stream (0).
   */
  readonly stream?: StreamHandle;
}

/** {@link LoaderOptions}, and the device to which batches go. */
export interface DeviceLoaderOptions extends LoaderOptions {
  /**
   * A device such as `cuda:0`. Bytes are copied to the device, and the transform's steps for values (normalize,
   * toDtype, layout) run there. The transform must not end with a randomErasing of values.
   */
  readonly device: string | DeviceOptions;
}

/**
 * The package for each kind of device. It exports `openDevice`, which takes a {@link DevicePlan} and resolves to a `DeviceStage`. This
 * package is built before them and works without them, so nothing imports them by name.
 */
const DEVICE_PACKAGES: Readonly<Record<string, string>> = { cuda: '@shardtool/cuda' };
const KINDS = Object.keys(DEVICE_PACKAGES);

const channels = z.tuple([z.number(), z.number(), z.number()]);
const schema = z.strictObject({
  name: z
    .string()
    .regex(
      new RegExp(`^(${KINDS.join('|')})(:\\d+)?$`),
      `must be ${KINDS.map((kind) => `"${kind}" or "${kind}:N"`).join(', or ')}`,
    ),
  dtype: z.enum(['uint8', 'float32', 'float16', 'bfloat16']).optional(),
  layout: z.enum(['nchw', 'nhwc']).optional(),
  mean: channels.optional(),
  std: channels.refine((values) => values.every((value) => value > 0), 'must have values above 0 only').optional(),
  slots: z.number().int().min(2).max(64).default(3),
  stream: z.union([z.bigint().min(0n), z.number().int().min(0)]).default(0),
});

/** The work of a device, the package that does it, and the options of the loader that makes bytes for it. */
interface PlannedDevice {
  readonly plan: DevicePlan;
  readonly packageName: string;
  readonly host: LoaderOptions;
  readonly values: Values;
}

/** Throws {@link OptionError}. */
export function planDevice(options: DeviceLoaderOptions): PlannedDevice {
  const { device, ...rest } = options;
  const asked = checkDevice(device);
  if (rest.reuse === false) {
    throw new OptionError(
      {},
      'With a device, the memory of batches is always reused: remove reuse, or set it to true or "manual".',
    );
  }
  if (rest.views !== undefined) {
    throw new OptionError(
      {},
      sentence`In TypeScript, views cannot be copied to a device: remove the option ${optionName('device')}, or views. In Python they can.`,
    );
  }
  const format = formatOf(rest);
  if (!isRgb(format)) {
    throw new OptionError(
      {},
      sentence`The option ${optionName('device')} takes 8-bit RGB images, not ${format.channels} channels of ${format.dtype}: remove ${optionName('device')}, or ${optionName('channels')} and ${optionName('pixelDtype')}. Python supports all formats.`,
    );
  }
  const { transform, values } = splitTransform(rest.transform);
  const schedule = rest.schedule?.map((entry) => ({ ...entry, transform: bytesOf(entry.transform, values) }));
  if (rest.collate === 'list') throw needsPixels("collate 'list'");
  const { mean, std } = asked;
  if ((mean ?? std) !== undefined && values.normalization !== null) {
    throw new OptionError(
      {},
      sentence`mean and std are set in the transform and in the option ${optionName('device')}: remove one of them.`,
    );
  }
  const [kind, ordinal = 0] = asked.name.split(':');
  const plan: DevicePlan = {
    ordinal: Number(ordinal),
    slots: asked.slots,
    stream: asked.stream,
    dtype: asked.dtype ?? ((mean ?? std) !== undefined && values.dtype === 'uint8' ? 'float32' : values.dtype),
    layout: asked.layout ?? values.layout,
    normalization: values.normalization ?? { mean: mean ?? [0, 0, 0], std: std ?? [1, 1, 1] },
    release: rest.reuse === 'manual' ? 'manual' : 'auto',
  };
  return {
    plan,
    packageName: DEVICE_PACKAGES[kind!]!,
    host: { ...rest, ...(transform && { transform }), schedule, reuse: 'manual' },
    values,
  };
}

function checkDevice(device: string | DeviceOptions): z.output<typeof schema> {
  return parseShape(schema, typeof device === 'string' ? { name: device } : device, ({ where, what }) => {
    const at = where === '' ? '' : `.${where}`;
    return new OptionError({}, sentence`The loader's option ${optionName('device')}${at} is invalid: it ${what}.`);
  });
}

/** How the device converts bytes to values. */
export interface Values {
  readonly dtype: DeviceDtype;
  readonly layout: DeviceLayout;
  readonly normalization: DevicePlan['normalization'] | null;
}

/**
 * The steps that produce bytes, for a transform of other epochs. Throws OptionError if the device would need another
 * conversion.
 */
export function bytesOf(input: TransformInput, values: Values): TransformInput {
  const split = splitTransform(input);
  if (JSON.stringify(split.values) === JSON.stringify(values)) return split.transform!;
  throw new OptionError(
    {},
    sentence`A device converts the images of all epochs in the same way: end all transforms with the same normalize, toDtype and layout.`,
  );
}

/** Splits the transform into steps that produce bytes and steps for values. */
function splitTransform(input: LoaderOptions['transform']): {
  transform: TransformInput | undefined;
  values: Values;
} {
  if (input === 'raw') throw needsPixels("transform 'raw'");
  const { dtype, layout, normalization, erasing } = compileTransform(input ?? []);
  if (dtype !== 'uint8' && erasing.length > 0) {
    throw new OptionError(
      {},
      sentence`With a device, randomErasing works on uint8 images: move it before normalize and toDtype.`,
    );
  }
  const values = { dtype: dtype as DeviceDtype, layout, normalization: normalization as Values['normalization'] };
  if (input === undefined || typeof input === 'string') return { transform: input, values };
  return { transform: input.filter((step) => !isOfValues(step)), values };
}

function isOfValues({ name }: StepInput): boolean {
  return name === 'normalize' || name === 'toDtype' || name === 'layout';
}

function needsPixels(what: string): OptionError {
  return new OptionError(
    {},
    sentence`A device takes images of one size: remove ${what}, or the option ${optionName('device')}.`,
  );
}
