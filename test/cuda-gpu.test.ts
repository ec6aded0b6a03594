import { Device, NoCudaError } from '@shardtool/cuda';
import { describe } from 'vitest';
import { deviceSuite } from './device-suite.js';

/**
 * Whether there is a GPU. If not, prints the reason and returns false, or throws if `SHARDTOOL_REQUIRE_GPU` is set, so that a
 * run on a machine with a GPU cannot pass without it.
 */
async function hasGpu(): Promise<boolean> {
  try {
    (await Device.open(0)).close();
    return true;
  } catch (error) {
    if (!(error instanceof NoCudaError) || process.env.SHARDTOOL_REQUIRE_GPU) throw error;
    console.log(`The tests that need a GPU are skipped. ${error.message}`);
    return false;
  }
}

// Values are within 1 ulp of the CPU's; a driver sometimes allocates a few megabytes for itself.
describe.runIf(await hasGpu())('on a GPU', () => deviceSuite({ ulp: 1, slackBytes: 2 ** 25 }));
