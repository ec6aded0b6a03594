import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

describe('the end of a CI run', () => {
  test('adds up vitest and pytest', () => {
    const reports = [
      vitest('a.json', { 'test/a.test.ts': ['passed', 'passed'] }),
      junit('b.xml', ['passed', 'skipped']),
    ];
    expect(count(0, reports)).toEqual({ status: 0, out: '3 passed, 0 failed\n' });
  });

  test('lists what failed, by file, test and message, before its last line', () => {
    const reports = [
      vitest('a.json', { 'test/a.test.ts': ['passed', 'failed'] }),
      junit('b.xml', ['passed', 'failed', 'error']),
    ];
    const { status, out } = count(2, reports);
    expect(status).toBe(1);
    expect(out).toContain('== FAILED: test/a.test.ts: test 1\nexpected 1 & got "2"');
    expect(out).toContain('== FAILED: python/tests/test_b.py: test_1\nexpected 1 & got "2"');
    expect(out).toContain('== FAILED: python/tests/test_b.py: test_2');
    expect(out).toMatch(/\n2 passed, 3 failed\n$/);
  });

  test('counts a test as passed that passed when its file ran once more, and lists it as unsteady', () => {
    const reports = [
      vitest('a.json', { 'test/a.test.ts': ['passed', 'failed'], 'test/b.test.ts': ['failed'] }),
      vitest('a.again.json', { 'test/a.test.ts': ['passed', 'passed'], 'test/b.test.ts': ['passed'] }),
    ];
    const { status, out } = count(0, reports);
    expect(status).toBe(0);
    expect(out).toMatch(/^== UNSTEADY.*: test\/a\.test\.ts: test 1$/m);
    expect(out).toMatch(/\n3 passed, 0 failed\n$/);
  });

  test('counts what fails in the second run, be it another test or the whole file', () => {
    const first = vitest('a.json', { 'test/a.test.ts': ['passed', 'failed'] });
    expect(count(1, [first, vitest('a.again.json', { 'test/a.test.ts': ['passed', 'failed'] })]).out).toMatch(
      /1 passed, 1 failed\n$/,
    );
    expect(count(1, [first, vitest('a.again.json', { 'test/a.test.ts': ['failed', 'passed'] })]).status).toBe(1);
    expect(count(1, [first, vitest('a.again.json', { 'test/a.test.ts': [] })]).out).toMatch(/1 passed, 1 failed\n$/);
  });

  test('is a failure where a step failed without a failing test, or nothing ran', () => {
    expect(count(1, [vitest('a.json', { 'test/a.test.ts': ['passed'] })])).toEqual({
      status: 1,
      out: '1 passed, 1 failed\n',
    });
    expect(count(0, [vitest('a.json', {})]).status).toBe(1);
  });

  test('runs at most three files once more', () => {
    const failing = (files: number) =>
      vitest(
        'a.json',
        Object.fromEntries(Array.from({ length: files }, (_, file) => [`test/${file}.test.ts`, ['failed']])),
      );
    expect(run('failed-files', failing(3))).toEqual({
      status: 0,
      out: 'test/0.test.ts test/1.test.ts test/2.test.ts\n',
    });
    expect(run('failed-files', failing(4))).toEqual({ status: 1, out: '' });
    expect(run('failed-files', failing(0))).toEqual({ status: 1, out: '' });
    expect(run('failed-files', junit('b.xml', ['failed', 'passed'])).out).toBe('python/tests/test_b.py\n');
  });
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'shardtool-ci-count-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const MESSAGE = 'expected 1 & got "2"';

/** A report of vitest: how the tests of each file ended; a file without tests did not load. */
function vitest(name: string, files: Record<string, string[]>): string {
  const testResults = Object.entries(files).map(([file, tests]) => ({
    name: join(root, file),
    status: tests.length > 0 && tests.every((status) => status === 'passed') ? 'passed' : 'failed',
    message: tests.length > 0 ? '' : 'cannot be loaded',
    assertionResults: tests.map((status, i) => ({
      status,
      fullName: `test ${i}`,
      failureMessages: status === 'failed' ? [MESSAGE] : [],
    })),
  }));
  const numPassedTests = Object.values(files)
    .flat()
    .filter((status) => status === 'passed').length;
  return written(name, JSON.stringify({ numPassedTests, testResults }));
}

function junit(name: string, tests: string[]): string {
  const message = MESSAGE.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  const bodies: Record<string, string> = {
    skipped: '<skipped message="no GPU">here</skipped>',
    failed: `<failure message="${message}">E &lt;b&gt;</failure>`,
    error: `<error message="${message}">E</error>`,
  };
  const cases = tests.map((status, i) => {
    const attributes = `classname="tests.test_b" name="test_${i}" file="tests/test_b.py" line="1"`;
    return status in bodies ? `<testcase ${attributes}>${bodies[status]}</testcase>` : `<testcase ${attributes} />`;
  });
  return written(
    name,
    `<?xml version="1.0"?><testsuites><testsuite name="pytest">${cases.join('')}</testsuite></testsuites>`,
  );
}

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function count(failedSteps: number, reports: string[]) {
  return run('count', String(failedSteps), ...reports);
}

function run(script: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync('node', [join(root, '.ci', `${script}.mjs`), ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return { status, out: stdout };
}
