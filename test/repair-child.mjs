// Repairs in a process of its own: `node repair-child.mjs FOLDER`. Prints the report, and the most memory that the process had.
import { readFileSync } from 'node:fs';
import { repair } from '@shardtool/writer';

const report = await repair(process.argv[2], { workers: 1 });
// resourceUsage() counts the memory of whoever started the process.
const [, peak] = /VmHWM:\s*(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'));
console.log(JSON.stringify({ ...report, peakBytes: peak * 1024 }));
