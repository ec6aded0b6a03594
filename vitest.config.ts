import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// Node parses these at each of some thousand starts, for 0.1 s; only the test that installs packages needs them.
const { NODE_EXTRA_CA_CERTS: certificates = '' } = process.env;
delete process.env.NODE_EXTRA_CA_CERTS;

const ALL = ['packages/*/src/**/*.test.ts', 'test/*.test.ts'];
/**
 * The product from outside: what other software judges (Python, a browser, a compiler, FUSE, LMDB's tools, a server of S3), what npm installs,
 * what the docs say to run, and how much a whole process takes. `npm run test:outside`, and `.ci/run` behind `npm test`.
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
/** Lists of test files by what they are run for. SHARDTOOL_LANE names one; without it everything runs but `long`. */
const LANES = {
  /**
   * Under another version of Node: threads, native code, files, HTTP and processes. What only orders, chooses or checks is the same there,
   * and so is what is made of bytes: `earlier` packs all layouts to the byte, and decodes them to the pixel. sharp decodes on it in the
   * lane `codec`, TurboJPEG in `codec-pixels`, `codec-regions` and `loader-pixels`; of the hub there is only another address to the same HTTP.
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
  /** `npm test`: all others. */
  inside: ALL,
  outside: OUTSIDE.map((name) => `test/${name}.test.ts`),
  /**
   * With sharp, on another version of Node: what decodes, from its functions to batches of a loader. Kernels and
   * steps get pixels, whoever decoded them: that they get them at the crop and size of the list is in `decoder-transforms`.
   */
  codec: ['test/{codec,decoder}-*.test.ts', 'test/{loader-pixels,loader-bad-images,odd-images-table}.test.ts'],
  /** What takes minutes: `npm run test:long`. */
  long: ['test/long/*.test.ts'],
};
/** Of these each file has a process of its own: they change its environment or folder, spy on it, or measure its memory, threads, reads or time. */
const APART = [
  'bench-gpu',
  'cli-remote',
  'codec-limits',
  'cuda-*',
  'endless',
  'guides',
  'lmdb-lsun',
  // These share what is packed by a module.
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
  // A process goes on asking the server of buckets that it asked first.
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
];
const lane = process.env.SHARDTOOL_LANE as keyof typeof LANES | undefined;
const included = lane === undefined ? ALL : LANES[lane];
const EXCLUDED = lane === 'inside' ? LANES.outside : [];
const WHOLE = {
  include: included.filter((glob) => glob.startsWith('test/')),
  setupFiles: ['test/remove-folders.ts'],
  // Node loads what is built: vitest would rewrite it for each file, for half of what a small test file costs.
  server: { deps: { external: [/\/packages\/\w+\/(dist|lib)\//] } },
};
const times = Number(process.env.SHARDTOOL_TIMES ?? 1);

export default defineConfig({
  test: {
    projects: [
      // A room's own tests share their modules: importing them for each file took half of these tests' time.
      {
        extends: true,
        test: { name: 'units', include: included.filter((glob) => glob.startsWith('packages/')), isolate: false },
      },
      // So do these, 0.3 to 0.5 s of processor time each; test/left-as-found.ts sees to it that a file leaves nothing to the next.
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
          // With the end of each name: else `verify-fix` would take `verify-fix-large`, which then runs in both.
          exclude: [`test/!(${APART.map((name) => `${name}.test.ts`).join('|')})`, ...EXCLUDED],
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
