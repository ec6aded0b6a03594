import { FileError } from '@shardtool/base';
import { shownLocation } from '@shardtool/storage';

/** Web servers do not list folders, so a browser cannot open a folder of single images. */
export async function folderParts(location: string): Promise<never> {
  const path = shownLocation(location);
  throw new FileError({ path }, `${path} cannot be listed by a browser: pack it with "shardtool pack" first.`);
}
