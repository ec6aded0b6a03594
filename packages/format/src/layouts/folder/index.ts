import { OptionError } from '@shardtool/base';
import type { ShardLayout } from '../layout.js';

export { FilesSource } from './files-source.js';
export { holdsImages, type ListedSamples, listSamples } from './list.js';

/** Images as files of their own. There is no file to walk: whoever opens a folder lists it, by {@link listSamples}. */
export const folder: ShardLayout = {
  name: 'folder',
  extension: '/',
  samples({ location }) {
    throw new OptionError(
      { path: location },
      `${location} is a folder of images and no shard: pack it first, with "shardtool pack".`,
    );
  },
};
