// Adds up the runners' own reports, lists what failed and prints the line that closes a run. Usage: count.mjs FAILED_STEPS REPORT...
// NAME.again.json is a second run of the files that failed in NAME.json: what passes there counts as passed, and is listed as unsteady.
import { existsSync } from 'node:fs';
import { readReport, WHOLE_FILE } from './reports.mjs';

const [failedSteps, ...paths] = process.argv.slice(2);
const LINES = 30;
let passed = 0;
let failed = 0;
for (const path of paths.filter((path) => !isAgain(path))) {
  const first = readReport(path);
  const againPath = path.replace(/(?=\.\w+$)/, '.again');
  const again = existsSync(againPath) ? readReport(againPath).failures : first.failures;
  const unsteady = first.failures.filter((failure) => !again.some((other) => isSame(failure, other)));
  passed += first.passed + unsteady.length;
  failed += again.length;
  for (const failure of again) print('FAILED', failure);
  for (const failure of unsteady) print('UNSTEADY: failed, and passed when its file ran once more', failure);
}
// A step that failed without a failing test (a lint error, say) counts as one.
if (failed === 0) failed = Number(failedSteps);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);

function isAgain(path) {
  return /\.again\.\w+$/.test(path);
}
/** A file that does not load has no tests: it stands for each of them. */
function isSame(one, other) {
  return one.file === other.file && (one.test === other.test || other.test === WHOLE_FILE);
}
function print(what, { file, test, message }) {
  console.log(`== ${what}: ${file}: ${test}`);
  console.log(message.split('\n').slice(0, LINES).join('\n'));
}
