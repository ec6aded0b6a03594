import { z } from 'zod';

/** The list of shards in `index.json` of an MDS dataset (mosaicml-streaming, base/format/base/reader.py). */
const LIST = z.object({
  version: z.literal(2),
  shards: z.array(
    z.object({ raw_data: z.object({ basename: z.string() }), zip_data: z.object({ basename: z.string() }).nullish() }),
  ),
});

/** Names of the shards, in order; for a compressed shard that of the compressed file. Throws if the text is not such a list. */
export function listedShards(text: string): readonly string[] {
  return LIST.parse(JSON.parse(text)).shards.map(({ raw_data, zip_data }) => (zip_data ?? raw_data).basename);
}
