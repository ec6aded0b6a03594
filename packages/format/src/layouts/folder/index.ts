import { OptionError } from '@shardtool/base';
import type { ShardLayout } from '../layout.js';

export { FilesSource } from './files-source.js';
export { holdsImages, type ListedSamples, listSamples } from './list.js';

/** Images as single files. There is no file to walk: the code that opens a folder lists it with {@link listSamples}. */
export const folder: ShardLayout = {
  name: 'folder',
  extension: '/',
  samples({ location }) {
    throw new OptionError(
      { path: location },
      `${location} is a folder of images, not a shard: pack it first, with "shardtool pack".`,
    );
  },
};
