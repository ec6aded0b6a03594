import { defineConfig } from 'vitest/config';

// Node parses these at each of some thousand starts, for 0.1 s; only the test that installs packages needs them.
const { NODE_EXTRA_CA_CERTS: certificates = '' } = process.env;
delete process.env.NODE_EXTRA_CA_CERTS;

const ALL = ['packages/*/src/**/*.test.ts', 'test/*.test.ts'];
/** Lists of test files by what they are run for. SHARDTOOL_LANE names one; without it everything runs but `long`. */
const LANES = {
  /** Under another version of Node: what touches threads, native code, files and processes. */
  node: [
    'packages/reader/src/{codec,loader,bridge}/**/*.test.ts',
    'packages/{storage,writer}/src/**/*.test.ts',
    'packages/format/src/layouts/**/*.test.ts',
    'test/{loader,codec,decoder,storage,remote,pack-resume,pack-parts,pack-memory}*.test.ts',
    'test/{cli-pack,cli-bench,cuda-kernel,cuda-loader,earlier,lmdb-tools,verify-fix,convert-streams}.test.ts',
  ],
  /** With another codec: what decodes. */
  codec: [
    'packages/reader/src/{codec,transform,kernels}/**/*.test.ts',
    'test/{codec,decoder}-*.test.ts',
    'test/{loader-batches,loader-bad-samples,odd-images-table,transform-batches}.test.ts',
  ],
  /** What takes minutes: `npm run test:long`. */
  long: ['test/long/*.test.ts'],
};
const lane = process.env.SHARDTOOL_LANE as keyof typeof LANES | undefined;
const times = Number(process.env.SHARDTOOL_TIMES ?? 1);

export default defineConfig({
  test: {
    include: lane === undefined ? ALL : LANES[lane],
    passWithNoTests: lane === 'long',
    reporters: process.env.SHARDTOOL_REPORT
      ? ['default', ['json', { outputFile: process.env.SHARDTOOL_REPORT }]]
      : ['default'],
    // What is tested is what is published.
    globalSetup: ['scripts/bundle.mjs', 'test/shared-folder.ts'],
    setupFiles: ['test/property-seed.ts'],
    provide: { certificates },
    testTimeout: 180_000 * times,
    hookTimeout: 180_000,
    // Two files at a time: tests start worker threads and child processes of their own.
    maxWorkers: 2,
  },
});
