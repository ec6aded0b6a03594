/** Opens datasets, with what makes loaders of them. */
import { DeviceLoader } from '../loader/device/device-loader.js';
import { Loader } from '../loader/loader.js';
import { giveLoaders } from './dataset.js';

giveLoaders({ Loader, DeviceLoader });

export { type OpenOptions, openDataset, openMixture, openStored, SPLIT_OVERLAY } from './open-files.js';
