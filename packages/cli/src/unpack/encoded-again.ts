import { PACK_NOTE_FILE } from '@shardtool/format';
import { joinLocation, readWhole } from '@shardtool/storage';

/**
 * Whether the pack stored the images of this dataset without re-encoding them, according to its record. False if it re-encoded them
 * or if there is no record: then an image can have another format than its file had.
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
