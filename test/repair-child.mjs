// Repairs in a separate process: `node repair-child.mjs FOLDER`. Prints the report, and the peak memory of the process.
import { readFileSync } from 'node:fs';
import { repair } from '@shardtool/writer';

const report = await repair(process.argv[2], { workers: 1 });
// resourceUsage() also counts the memory of the parent process.
const [, peak] = /VmHWM:\s*(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'));
console.log(JSON.stringify({ ...report, peakBytes: peak * 1024 }));
