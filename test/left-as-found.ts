import { afterAll, expect } from 'vitest';

const first = process.env;
// Runs before a test file, the next of which is in the same process: what one changes there and leaves so is its error.
const found = state();

afterAll(() => {
  const remedy =
    'a test file leaves its process as it was: mend what changes it, or list it as APART in vitest.config.ts';
  expect(state(), remedy).toEqual(found);
});

function state(): object {
  // libvips sets it where it is first loaded.
  const { VIPSHOME, ...environment } = process.env;
  return {
    environment,
    // An object in its place would hide what later files change.
    isEnvironment: Object.is(process.env, first),
    folder: process.cwd(),
    exitCode: process.exitCode,
    console: globalThis.console,
    writes: [process.stdout.write, process.stderr.write],
    listeners: Object.fromEntries(process.eventNames().map((name) => [String(name), process.listenerCount(name)])),
  };
}
