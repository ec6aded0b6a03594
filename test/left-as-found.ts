import { afterAll, expect } from 'vitest';

const first = process.env;
// Runs before each test file. The next file uses the same process, so global changes that a file leaves are errors.
const found = state();

afterAll(() => {
  const remedy =
    'a test file leaves its process as it was: fix what changes it, or list it as APART in vitest.config.ts';
  expect(state(), remedy).toEqual(found);
});

function state(): object {
  // libvips sets it when it is first loaded.
  const { VIPSHOME, ...environment } = process.env;
  return {
    environment,
    // An object in its place would hide changes by later files.
    isEnvironment: Object.is(process.env, first),
    folder: process.cwd(),
    exitCode: process.exitCode,
    console: globalThis.console,
    writes: [process.stdout.write, process.stderr.write],
    // The exit of the process waits for threads that load libraries, as long as there are threads.
    listeners: Object.fromEntries(
      process
        .eventNames()
        .filter((name) => name !== 'exit')
        .map((name) => [String(name), process.listenerCount(name)]),
    ),
  };
}
