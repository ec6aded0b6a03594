// Reads the reports of the test runners: vitest's JSON and pytest's JUnit XML.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Name of the test if a file could not be loaded. */
export const WHOLE_FILE = '(the whole file)';

/**
 * @param {string} path a report
 * @returns {{ passed: number, failures: { file: string, test: string, message: string }[] }}
 *   `file` is an argument with which the runner runs the test's file again. A file that could not be loaded is one failure.
 */
export function readReport(path) {
  const text = readFileSync(path, 'utf8');
  return path.endsWith('.xml') ? junit(text) : vitest(JSON.parse(text));
}

function vitest({ numPassedTests, testResults }) {
  const failures = [];
  for (const { name, status, message, assertionResults } of testResults) {
    const file = relative(process.cwd(), name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    for (const test of failed) failures.push({ file, test: test.fullName, message: test.failureMessages.join('\n') });
    if (status === 'failed' && failed.length === 0) failures.push({ file, test: WHOLE_FILE, message });
  }
  return { passed: numPassedTests, failures };
}

/** pytest's report of the family xunit1, whose paths start at `python`. An error is a test whose setup or teardown failed. */
function junit(text) {
  let passed = 0;
  const failures = new Map();
  for (const [, attributes, body = ''] of text.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)) {
    const of = (name) => attributes.match(new RegExp(`(?:^| )${name}="([^"]*)"`))?.[1] ?? '';
    const bad = body.match(/<(?:failure|error) message="([^"]*)"/);
    const file = `python/${of('file')}`;
    if (bad) failures.set(`${file} ${of('name')}`, { file, test: unescaped(of('name')), message: unescaped(bad[1]) });
    else if (!body.includes('<skipped')) passed++;
  }
  return { passed, failures: [...failures.values()] };
}

const ENTITIES = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };
function unescaped(text) {
  return text
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(code))
    .replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ENTITIES[name]);
}
