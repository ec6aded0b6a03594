import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Node parses these at each of some thousand starts, for 0.1 s; only the test that installs packages needs them.
const { NODE_EXTRA_CA_CERTS: certificates = '' } = process.env;
delete process.env.NODE_EXTRA_CA_CERTS;

const ALL = ['packages/*/src/**/*.test.ts', 'test/*.test.ts'];
/** Lists of test files by what they are run for. SHARDTOOL_LANE names one; without it everything runs but `long`. */
const LANES = {
  /** Under another version of Node: threads, native code, files, HTTP and processes. What only orders or chooses rows is the same there. */
  node: [
    'packages/reader/src/{codec,loader,bridge}/**/*.test.ts',
    'packages/{storage,writer}/src/**/*.test.ts',
    'packages/format/src/layouts/**/*.test.ts',
    'test/loader-{bad-samples,batches,lifetime,ranks,reading,resume,slot-file,slow,stopping}.test.ts',
    'test/{codec,decoder,storage}*.test.ts',
    'test/{cli-bench,convert-streams,cuda-kernel,cuda-loader,earlier,lmdb-tools,pack-resume,pack-resume-kill,remote-faults}.test.ts',
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
const included = lane === undefined ? ALL : LANES[lane];
const times = Number(process.env.SHARDTOOL_TIMES ?? 1);

export default defineConfig({
  test: {
    projects: [
      // A room's own tests share their modules: importing them for each file took half of these tests' time.
      {
        extends: true,
        test: { name: 'units', include: included.filter((glob) => glob.startsWith('packages/')), isolate: false },
      },
      // These start processes, change what is global, or close what others hold open: each has its own.
      {
        extends: true,
        test: {
          name: 'whole',
          include: included.filter((glob) => glob.startsWith('test/')),
          // Node loads what is built: vitest would rewrite it for each file, for half of what a small test file costs.
          server: { deps: { external: [/\/packages\/\w+\/(dist|lib)\//] } },
        },
      },
    ],
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
    // More than the cores: tests wait for timers and for processes of their own, a third of the time.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
  },
});
