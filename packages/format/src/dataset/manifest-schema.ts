import { z } from 'zod';
import { OUTPUT_LAYOUTS } from '../layouts/registry.js';
import { COLUMN_TYPES } from '../sample/label-column.js';
import { parseShape } from '../shape.js';
import { MANIFEST_VERSION, type Manifest } from './manifest.js';

const count = z.int().nonnegative();

/**
 * A file name, or a folder and a file name: never a path out of the dataset's folder. No segment begins with a dot or
 * has a backslash or colon, which have a meaning on Windows.
 */
const FILE_BELOW = /^[^./\\:\0][^/\\:\0]*(\/[^./\\:\0][^/\\:\0]*)?$/;

const MANIFEST = z.object({
  version: z.literal(MANIFEST_VERSION),
  format: z.enum(OUTPUT_LAYOUTS),
  identity: z.string(),
  samples: count,
  bytes: count,
  madeFrom: z.string().optional(),
  classes: z.array(z.object({ name: z.string(), samples: count })),
  fields: z.array(z.object({ name: z.string(), samples: count })),
  columns: z.array(z.object({ name: z.string(), type: z.enum(COLUMN_TYPES), most: count.optional() })),
  shards: z.array(
    z.object({
      file: z.string().regex(FILE_BELOW, 'must be the name of a file inside the folder of the dataset'),
      bytes: count,
      samples: count,
      crc32: z.string().regex(/^[0-9a-f]{8}$/, 'must be eight hexadecimal digits'),
      maxSampleBytes: count,
    }),
  ),
}) satisfies z.ZodType<Manifest>;

/** Returns the manifest in the content of dataset.json, or a description of the first problem. */
export function checkManifest(json: unknown): Manifest | string {
  try {
    return parseShape(MANIFEST, json, ({ where, what }) => new Error(`${where || 'its content'} ${what}`));
  } catch (error) {
    return (error as Error).message;
  }
}
