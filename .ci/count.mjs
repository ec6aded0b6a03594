// Adds up the reports of the test runners, lists failures, and prints the last line of a run. Usage: count.mjs FAILED_STEPS REPORT...
// A test in quarantine.json may fail: it is listed, and counts neither as passed nor as failed. Each entry has the test's file and
// name, the reason, and the date when it was added.
import { readFileSync } from 'node:fs';
import { readReport } from './reports.mjs';

const [failedSteps, ...paths] = process.argv.slice(2);
const quarantined = JSON.parse(readFileSync(process.env.SHARDTOOL_QUARANTINE ?? '.ci/quarantine.json', 'utf8'));
const LINES = 30;
let passed = 0;
let failed = 0;
/** Number of steps in which only tests in quarantine failed. */
let excusedSteps = 0;
for (const path of paths) {
  const report = readReport(path);
  passed += report.passed;
  const before = failed;
  for (const failure of report.failures) {
    const entry = quarantined.find(({ file, test }) => file === failure.file && test === failure.test);
    if (entry === undefined) failed++;
    print(entry === undefined ? 'FAILED' : `QUARANTINED since ${entry.date} (${entry.reason})`, failure);
  }
  if (report.failures.length > 0 && failed === before) excusedSteps++;
}
// A step that failed without a failing test, such as a lint error, counts as one failure.
if (failed === 0) failed = Math.max(0, Number(failedSteps) - excusedSteps);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);

function print(what, { file, test, message }) {
  console.log(`== ${what}: ${file}: ${test}`);
  console.log(message.split('\n').slice(0, LINES).join('\n'));
}
