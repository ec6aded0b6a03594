import { encodeNpyImage, NPY_FIELD } from '../npy/image.js';
import type { ColumnValue } from '../sample/label-column.js';
import type { Source } from '../source.js';
import { PieceSource } from './bytes/piece-source.js';
import type { PartedShard, PartReader, SamplePosition } from './layout.js';

/** Images of one size, stored in a file as raw pixels. */
export interface ArrayImages {
  readonly count: number;
  readonly width: number;
  readonly height: number;
  /** Class number by image; -1 or missing for none. */
  readonly cls: ArrayLike<number>;
  readonly classes: readonly string[];
  /** Label columns, by image. */
  readonly columns: ReadonlyMap<string, ArrayLike<ColumnValue>>;
  /** Absent: the keys are the file's name and a number. */
  readonly keys?: readonly string[];
  /** Reads the pixels of `count` images from `first` on, [count, height, width, 3]. */
  pixels(first: number, count: number): Promise<Uint8Array>;
}

/** How many bytes of images are produced at once. */
const PIECE_BYTES = 1 << 20;
const YIELDED = 1024;

/** A file of images, presented as if each were stored by itself. */
export interface ImageSource extends Source {
  readonly classes: readonly string[];
  readonly count: number;
  samples(): AsyncGenerator<readonly SamplePosition[]>;
}

/** Everything about one image except its position. */
export function sampleRow(
  { cls, columns, keys }: Pick<ArrayImages, 'cls' | 'columns' | 'keys'>,
  stem: string,
  number: number,
): Pick<SamplePosition, 'key' | 'cls' | 'labels'> {
  const labels = new Map<string, ColumnValue>();
  for (const [name, values] of columns) labels.set(name, values[number] ?? null);
  const key = keys?.[number] ?? `${stem}/${String(number).padStart(6, '0')}`;
  return { key, cls: cls[number] ?? -1, labels };
}

/** A file of {@link ArrayImages}, presented as if each image were stored as a `.npy` file, which is the content of the field `npy`. */
export class ArraySource extends PieceSource implements ImageSource {
  readonly #images: ArrayImages;
  readonly #bytes: number;

  constructor(source: Source, images: ArrayImages) {
    const { count, width, height } = images;
    const bytes = encodeNpyImage(new Uint8Array(width * height * 3), width, height).length;
    const most = Math.max(1, Math.floor(PIECE_BYTES / bytes));
    const starts = Float64Array.from(
      { length: Math.ceil(count / most) + 1 },
      (_, i) => Math.min(count, i * most) * bytes,
    );
    super(source, {
      starts,
      load: async (piece) => {
        const first = piece * most;
        const here = Math.min(most, count - first);
        const pixels = await images.pixels(first, here);
        const size = width * height * 3;
        return Buffer.concat(
          Array.from({ length: here }, (_, i) =>
            encodeNpyImage(pixels.subarray(i * size, (i + 1) * size), width, height),
          ),
        );
      },
    });
    this.#images = images;
    this.#bytes = bytes;
  }

  get classes(): readonly string[] {
    return this.#images.classes;
  }

  get count(): number {
    return this.#images.count;
  }

  async *samples(): AsyncGenerator<readonly SamplePosition[]> {
    const { count } = this.#images;
    const stem = stemOf(this.location);
    const bytes = this.#bytes;
    for (let number = 0; number < count; ) {
      const found: SamplePosition[] = [];
      for (const end = Math.min(count, number + YIELDED); number < end; number++) {
        const offset = number * bytes;
        const fields = [{ name: NPY_FIELD, offset, bytes }];
        found.push({ ...sampleRow(this.#images, stem, number), offset, bytes, fields });
      }
      yield found;
    }
  }
}

/**
 * A reader of files of {@link ArrayImages}. It opens a file once to learn its class names, and reads it as a single
 * part.
 */
export function arrayReader(read: (source: Source) => Promise<ImageSource>): PartReader {
  return async (open): Promise<PartedShard> => {
    const whole = await read(await open());
    const { classes, count, size } = whole;
    await whole.close();
    const during = async function* (): AsyncGenerator<readonly SamplePosition[]> {
      const opened = await read(await open());
      try {
        yield* opened.samples();
      } finally {
        await opened.close();
      }
    };
    const part = { firstSample: 0, samples: count, bytes: size, open: async () => read(await open()) };
    return { classes, parts: [{ ...part, positions: during, labels: during }] };
  };
}

/** The name of a file up to its first dot. */
export function stemOf(location: string): string {
  const name = location.slice(Math.max(location.lastIndexOf('/'), location.lastIndexOf('\\')) + 1);
  const dot = name.indexOf('.');
  return dot <= 0 ? name : name.slice(0, dot);
}
