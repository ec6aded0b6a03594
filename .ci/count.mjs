// Adds up the runners' own reports and prints the line that closes a run. Usage: count.mjs FAILED_STEPS REPORT...
import { existsSync, readFileSync } from 'node:fs';

const [failedSteps, ...reports] = process.argv.slice(2);
let passed = 0;
let failed = 0;
for (const file of reports) {
  // A run that was ended from outside wrote none; its step has failed.
  if (!existsSync(file)) continue;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  passed += report.numPassedTests;
  failed += report.numFailedTests;
}
// A step that failed without a failing test (a lint error, say) counts as one.
if (failed === 0) failed = Number(failedSteps);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
