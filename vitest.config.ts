import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Node parses these certificates at every start, which takes 0.1 s. Only the test that installs packages needs them.
const { NODE_EXTRA_CA_CERTS: certificates = '' } = process.env;
delete process.env.NODE_EXTRA_CA_CERTS;

const ALL = ['packages/*/src/**/*.test.ts', 'test/*.test.ts'];
/**
 * Tests that need other software (Python, a browser, a compiler, FUSE, LMDB's tools, an S3 server), install npm packages, run the commands
 * of the docs, or measure whole processes. `npm run test:outside` runs them, and `.ci/run` after `npm test`.
 */
const OUTSIDE = [
  'bench-gpu',
  'cli-bench',
  'conformance',
  'cuda-*',
  'examples',
  'foreign-*',
  'format-page*',
  'guides',
  'lmdb-lsun',
  'lmdb-python',
  'lmdb-tools',
  'loader-options',
  'loader-slow',
  'msgpack-python',
  'odd-images-table',
  'other-indexes',
  'pack-in-flight',
  'pack-memory',
  'packages-tarballs',
  'python-index',
  'remote-datasets',
  'storage-s3',
  'table-layouts',
  'tar-own',
  'unknown-user',
  'view-page',
  'view-static',
];
/** Lists of test files by purpose. SHARDTOOL_LANE chooses a list. Without it, all tests except `long` run. */
const LANES = {
  /**
   * Tests for another version of Node: threads, native code, files, HTTP and processes. Code that only orders, selects or checks does not
   * depend on the version, nor does code for bytes: `earlier` compares all packed layouts byte by byte, and decoded pixels. sharp decodes in
   * the lane `codec`, TurboJPEG in `codec-pixels`, `codec-regions` and `loader-pixels`. The Hub only uses the same HTTP client.
   */
  node: [
    'packages/reader/src/{loader,bridge}/**/*.test.ts',
    'packages/{base,storage}/src/**/*.test.ts',
    'packages/writer/src/{workers,dedupe,output,source}/**/*.test.ts',
    'packages/format/src/layouts/{file-window,write-buffer,tar/write}.test.ts',
    'test/loader-{lifetime,reading,slot-file,slow,stopping}.test.ts',
    'test/{codec-limits,codec-pixels,codec-regions,loader-pixels,storage-http,storage-s3}.test.ts',
    'test/{convert-streams,earlier,pack-resume-kill,remote-faults,slow-files}.test.ts',
  ],
  /** `npm test`: all except `outside`. */
  inside: ALL,
  outside: OUTSIDE.map((name) => `test/${name}.test.ts`),
  /**
   * Tests of decoding with sharp, on another version of Node: from its functions to batches of a loader. Kernels and steps
   * do not depend on the decoder. `decoder-transforms` checks that they get pixels with the right crop and size.
   */
  codec: ['test/{codec,decoder}-*.test.ts', 'test/{loader-pixels,loader-bad-images,odd-images-table}.test.ts'],
  /** Tests that take minutes: `npm run test:long`. */
  long: ['test/long/*.test.ts'],
};
/** Test files that need a separate process: they change its environment or folder, spy on it, or measure its memory, threads, reads or time. */
const APART = [
  'bench-gpu',
  'cli-remote',
  'codec-limits',
  'cuda-*',
  'endless',
  'guides',
  'lmdb-lsun',
  // These share a dataset that a module packs.
  'loader-bad-images',
  'loader-bad-samples',
  'transform-batches',
  'views',
  'loader-lifetime',
  'loader-options',
  'loader-reading',
  'loader-slot-file',
  'loader-slow',
  'loader-stopping',
  'pack-in-flight',
  'pack-memory',
  'pack-messy-folder',
  'pack-shards',
  'remote-*',
  'storage-*',
  'view-*',
  // A process keeps using the bucket server that it used first.
  'compact',
  'convert-reshard',
  'erase',
  'living-model',
  'pack-manifest',
  'pack-provenance',
  'pack-apply-changes',
  'pack-from-bucket',
  'pack-to-bucket',
  'pack-yolo',
  'versions',
  'writer',
  'writer-parts',
  // It counts the child processes of its process.
  'slow-files',
];
const lane = process.env.SHARDTOOL_LANE as keyof typeof LANES | undefined;
const included = lane === undefined ? ALL : LANES[lane];
const EXCLUDED = lane === 'inside' ? LANES.outside : [];
const WHOLE = {
  include: included.filter((glob) => glob.startsWith('test/')),
  setupFiles: ['test/remove-folders.ts'],
  // Node loads the built files. vitest would transform them for each test file, which takes half of the time of a small one.
  server: { deps: { external: [/\/packages\/\w+\/(dist|lib)\//] } },
};
const times = Number(process.env.SHARDTOOL_TIMES ?? 1);

export default defineConfig({
  test: {
    projects: [
      // Unit tests of packages share their modules. Importing them for each file took half of the time of these tests.
      {
        extends: true,
        test: { name: 'units', include: included.filter((glob) => glob.startsWith('packages/')), isolate: false },
      },
      // These too, which saves 0.3 to 0.5 s of CPU time each. test/left-as-found.ts checks that a file leaves nothing behind for the next.
      {
        extends: true,
        test: {
          ...WHOLE,
          name: 'together',
          exclude: [`test/{${APART.join(',')}}.test.ts`, 'test/long/**', ...EXCLUDED],
          setupFiles: [...WHOLE.setupFiles, 'test/left-as-found.ts'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          ...WHOLE,
          name: 'apart',
          // With the extension, because `verify-fix` would also match `verify-fix-large`, which would then run twice.
          exclude: [`test/!(${APART.map((name) => `${name}.test.ts`).join('|')})`, ...EXCLUDED],
        },
      },
    ],
    passWithNoTests: lane === 'long',
    reporters: process.env.SHARDTOOL_REPORT
      ? ['default', ['json', { outputFile: process.env.SHARDTOOL_REPORT }]]
      : ['default'],
    // The tests use the bundles that are published.
    globalSetup: ['scripts/bundle.mjs', 'test/shared-folder.ts'],
    setupFiles: ['test/property-seed.ts'],
    provide: { certificates },
    testTimeout: 180_000 * times,
    hookTimeout: 180_000,
    // More than the number of cores, because tests wait for timers and for their processes a third of the time.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
  },
});
