// Preloaded into a process: kills it before its call number KILL_AT that changes files. Each thread counts separately.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const at = Number(process.env.KILL_AT);
let calls = 0;

function counted(object, name) {
  const call = object[name];
  object[name] = function (...inputs) {
    if (calls++ === at) process.kill(process.pid, 'SIGKILL');
    return call.apply(this, inputs);
  };
}

for (const name of [
  'writeSync',
  'renameSync',
  'linkSync',
  'rmSync',
  'unlinkSync',
  'mkdirSync',
  'fsyncSync',
  'ftruncateSync',
  'writeFileSync',
  'utimesSync',
  'copyFileSync',
]) {
  counted(fs, name);
}
for (const name of ['open', 'rename', 'link', 'rm', 'unlink', 'mkdir', 'writeFile', 'copyFile', 'utimes']) {
  counted(fs.promises, name);
}
syncBuiltinESMExports();
