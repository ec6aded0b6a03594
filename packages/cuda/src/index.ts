import type { DevicePlan, DeviceStage } from '@shardtool/reader';
import { Stage } from './stage.js';

export { Device, type PinnedMemory } from './device.js';
export { CudaError, NoCudaError } from './errors.js';

/**
 * Opens a device with the streams, memory and kernel for batches. The loader calls it for the option `device`. Throws
 * {@link NoCudaError} if there is no driver or device, OptionError if no device has this number, and {@link CudaError} for any
 * other error of the driver.
 */
export function openDevice(plan: DevicePlan): Promise<DeviceStage> {
  return Stage.open(plan);
}
