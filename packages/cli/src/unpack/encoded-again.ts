import { PACK_NOTE_FILE } from '@shardtool/format';
import { joinLocation, readWhole } from '@shardtool/storage';

/**
 * Whether a pack took the images of this dataset as they were, as its note says. False if it encoded them again, and if no note
 * says it: then an image may be of another kind than its file was.
 */
export async function areAsPacked(location: string): Promise<boolean> {
  try {
    const text = Buffer.from(await readWhole(joinLocation(location, PACK_NOTE_FILE))).toString();
    const { options } = JSON.parse(text) as { options?: { encoder?: unknown } };
    return options !== undefined && options.encoder === undefined;
  } catch {
    return false;
  }
}
