import { NpyError, OptionError, optionName, SampleChecksumError, sentence } from '@shardtool/base';
import { imageFields, isNpy, readNpyHeader } from '@shardtool/format';
import type { PixelFormat } from '../../codec/pixel-format.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';

/** The values of an array [height, width, channels], or [height, width]. */
interface ArrayFormat {
  readonly channels: number;
  /** NumPy's name of the type without its byte order, such as u2. */
  readonly type: string;
}

/**
 * Refuses a mixture whose datasets store arrays of different channels or types, which cannot be rows of one batch. Otherwise the loop
 * would end at the first sample of the second format, perhaps late in an epoch. Reads the first sample of each dataset of arrays. Photos
 * are not read, since they are converted. Throws {@link OptionError}.
 */
export async function checkMixtureFormats(
  dataset: StoredDataset,
  format: PixelFormat,
  image: string | undefined,
): Promise<void> {
  if (dataset.mixture === null) return;
  const found = await Promise.all(
    dataset.mixture.datasets.map(async ({ name, dataset: one }) => ({ name, array: await arrayOf(one, image) })),
  );
  const [first, ...others] = found.flatMap(({ name, array }) => (array === null ? [] : [{ name, ...array }]));
  if (first === undefined) return;
  for (const other of others) {
    const isOtherType = format.dtype !== 'float32' && other.type !== first.type;
    const hasSameChannels = other.channels === first.channels;
    if (hasSameChannels && !isOtherType) continue;
    const remedy = hasSameChannels
      ? sentence`set ${optionName('pixelDtype')} to float32, which accepts both, or store both in one format`
      : 'store both in one format, or load them separately';
    throw new OptionError(
      {},
      sentence`Images of ${first.name} are arrays of ${described(first)}, and those of ${other.name} of ${described(other)}, so they cannot be in one batch: ${remedy}.`,
    );
  }
}

/** The image of a dataset's first sample, if it is an array. Null if it is not an array, or is damaged. */
async function arrayOf(dataset: StoredDataset, image: string | undefined): Promise<ArrayFormat | null> {
  const field = image ?? imageFields(dataset.fields)[0];
  if (dataset.size === 0 || field === undefined || !/(^|\.)npy$/.test(field)) return null;
  try {
    const { fields } = await dataset.get(0);
    const bytes = fields[field];
    if (bytes === undefined || !isNpy(bytes)) return null;
    const { dtype, shape } = readNpyHeader(bytes);
    // bool is read as uint8.
    return { channels: shape[2] ?? 1, type: dtype.replace(/^[<>|=]/, '').replace('b1', 'u1') };
  } catch (error) {
    // Whether a damaged sample ends the loop is decided when its batch is made.
    if (error instanceof NpyError || error instanceof SampleChecksumError) return null;
    throw error;
  }
}

const KINDS: Readonly<Record<string, string>> = { u: 'uint', i: 'int', f: 'float' };

function described({ channels, type }: ArrayFormat): string {
  const kind = KINDS[type[0]!];
  const name = kind === undefined ? type : `${kind}${Number(type.slice(1)) * 8}`;
  return `${channels} ${channels === 1 ? 'channel' : 'channels'} of ${name}`;
}
