// Adds up the runners' own reports and prints the line that closes a run. Usage: count.mjs FAILED_STEPS REPORT...
import { existsSync, readFileSync } from 'node:fs';

const [failedSteps, ...reports] = process.argv.slice(2);
let passed = 0;
let failed = 0;
for (const file of reports) {
  // A run that was ended from outside wrote none; its step has failed.
  if (!existsSync(file)) continue;
  const report = file.endsWith('.xml') ? junit(readFileSync(file, 'utf8')) : vitest(readFileSync(file, 'utf8'));
  passed += report.passed;
  failed += report.failed;
}
// A step that failed without a failing test (a lint error, say) counts as one.
if (failed === 0) failed = Number(failedSteps);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);

function vitest(text) {
  const { numPassedTests, numFailedTests } = JSON.parse(text);
  return { passed: numPassedTests, failed: numFailedTests };
}

/** pytest's report: the numbers of its suites. An error is a test that could not be set up, or cleaned up after. */
function junit(text) {
  let passed = 0;
  let failed = 0;
  for (const [suite] of text.matchAll(/<testsuite .*?>/gs)) {
    const number = (name) => Number(suite.match(new RegExp(` ${name}="(\\d+)"`))?.[1] ?? 0);
    const bad = number('failures') + number('errors');
    failed += bad;
    passed += number('tests') - bad - number('skipped');
  }
  return { passed, failed };
}
