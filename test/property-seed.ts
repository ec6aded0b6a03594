import fc from 'fast-check';
import { SEED } from './random.js';
import { TIMES } from './repetitions.js';

// Property tests run the same cases every time, so that a failure points at the change. SHARDTOOL_SEED=NUMBER tries other cases;
// SHARDTOOL_TIMES=NUMBER multiplies the number of cases of tests that do not set their own.
fc.configureGlobal({ seed: SEED, numRuns: 100 * TIMES });
