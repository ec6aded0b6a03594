import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    reporters: process.env.SHARDTOOL_REPORT
      ? ['default', ['json', { outputFile: process.env.SHARDTOOL_REPORT }]]
      : ['default'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two files at a time: tests start worker threads and child processes of their own.
    maxWorkers: 2,
  },
});
