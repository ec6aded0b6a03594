import fc from 'fast-check';
import { often } from './repetitions.js';

// The cases of property tests are the same in every run, so that a change is to blame for what fails;
// SHARDTOOL_SEED=NUMBER tries others, and SHARDTOOL_TIMES=NUMBER so many times as many where a test has no number of its own.
fc.configureGlobal({ seed: Number(process.env.SHARDTOOL_SEED ?? 2026), numRuns: often(100) });
