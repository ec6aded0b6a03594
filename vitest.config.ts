import { defineConfig } from 'vitest/config';

// Node parses these at each of some thousand starts, for 0.1 s; only the test that installs packages needs them.
const { NODE_EXTRA_CA_CERTS: certificates = '' } = process.env;
delete process.env.NODE_EXTRA_CA_CERTS;

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    reporters: process.env.SHARDTOOL_REPORT
      ? ['default', ['json', { outputFile: process.env.SHARDTOOL_REPORT }]]
      : ['default'],
    // What is tested is what is published.
    globalSetup: ['scripts/bundle.mjs', 'test/shared-folder.ts'],
    setupFiles: ['test/property-seed.ts'],
    // A loop over nothing proves nothing.
    expect: { requireAssertions: true },
    provide: { certificates },
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two files at a time: tests start worker threads and child processes of their own.
    maxWorkers: 2,
  },
});
