// Prints the test files that failed in a report, for one more run of each by itself. Usage: failed-files.mjs REPORT
// Ends with 1 where there is none (something else went wrong), or where so many failed that it is no accident.
import { readReport } from './reports.mjs';

const MOST = 3;
const files = new Set(readReport(process.argv[2]).failures.map(({ file }) => file));
if (files.size === 0 || files.size > MOST) process.exit(1);
console.log([...files].join(' '));
