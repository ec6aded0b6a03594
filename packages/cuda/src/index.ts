import type { DevicePlan, DeviceStage } from '@shardtool/reader';
import { Stage } from './stage.js';

export { Device, type PinnedMemory } from './device.js';
export { CudaError, NoCudaError } from './errors.js';

/**
 * Opens a device, with all that batches need on their way to it; the loader's option `device` does. Throws
 * {@link NoCudaError} without a driver or device, OptionError for a number that no device has, {@link CudaError} for
 * whatever else the driver refuses.
 */
export function openDevice(plan: DevicePlan): Promise<DeviceStage> {
  return Stage.open(plan);
}
