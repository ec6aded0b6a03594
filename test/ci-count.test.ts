import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

describe('the summary of a CI run', () => {
  test('adds the counts of vitest and pytest', () => {
    const reports = [
      vitest('a.json', { 'test/a.test.ts': ['passed', 'passed'] }),
      junit('b.xml', ['passed', 'skipped']),
    ];
    expect(count(0, reports)).toEqual({ status: 0, out: '3 passed, 0 failed\n' });
  });

  test('lists failures by file, test and message before its last line', () => {
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

  test('lists a failing test in quarantine, and does not count it', () => {
    const quarantine = written(
      'quarantine.json',
      JSON.stringify([{ file: 'test/a.test.ts', test: 'test 1', reason: 'races with the disk', date: '2026-11-25' }]),
    );
    const report = vitest('a.json', { 'test/a.test.ts': ['passed', 'failed'] });
    const { status, out } = count(1, [report], quarantine);
    expect(status).toBe(0);
    expect(out).toContain('== QUARANTINED since 2026-11-25 (races with the disk): test/a.test.ts: test 1');
    expect(out).toMatch(/\n1 passed, 0 failed\n$/);
    const other = vitest('b.json', { 'test/b.test.ts': ['failed', 'passed'] });
    expect(count(2, [report, other], quarantine).out).toMatch(/\n2 passed, 1 failed\n$/);
  });

  test('is a failure if a step failed without a failing test, or nothing ran', () => {
    expect(count(1, [vitest('a.json', { 'test/a.test.ts': ['passed'] })])).toEqual({
      status: 1,
      out: '1 passed, 1 failed\n',
    });
    expect(count(0, [vitest('a.json', {})]).status).toBe(1);
  });
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'shardtool-ci-count-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const MESSAGE = 'expected 1 & got "2"';

/** A report of vitest: the results of the tests in each file; a file without tests could not be loaded. */
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

function count(failedSteps: number, reports: string[], quarantine = '') {
  const { status, stdout, stderr } = spawnSync('node', [join(root, '.ci/count.mjs'), String(failedSteps), ...reports], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, SHARDTOOL_QUARANTINE: quarantine || undefined },
  });
  expect(stderr).toBe('');
  return { status, out: stdout };
}
