import fc from 'fast-check';

// The cases of property tests are the same in every run, so that a change is to blame for what fails;
// SHARDTOOL_SEED=NUMBER tries others.
fc.configureGlobal({ seed: Number(process.env.SHARDTOOL_SEED ?? 2026) });
