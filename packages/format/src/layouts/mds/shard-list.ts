import { z } from 'zod';

/** What `index.json` of an MDS dataset says of its shards (mosaicml-streaming, base/format/base/reader.py). */
const LIST = z.object({
  version: z.literal(2),
  shards: z.array(
    z.object({ raw_data: z.object({ basename: z.string() }), zip_data: z.object({ basename: z.string() }).nullish() }),
  ),
});

/** Names of the shards in their order, of the compressed file where there is one. Throws where the text is no such list. */
export function listedShards(text: string): readonly string[] {
  return LIST.parse(JSON.parse(text)).shards.map(({ raw_data, zip_data }) => (zip_data ?? raw_data).basename);
}
