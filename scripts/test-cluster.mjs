/**
 * Packs the example photos in parts on a single-machine Slurm, with examples/cluster/pack.sbatch, and on a local Ray, with
 * examples/cluster/ray_pack.py, and compares the bytes with those of one process. `npm run test:cluster` runs both. Append
 * `slurm` or `ray` to run only one.
 *
 * Slurm needs root, and Debian's packages slurm-wlm and munge. Its daemons are started with a separate configuration and stopped
 * at the end. Ray needs python3 with venv. Ray is installed from PyPI at a pinned version.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const RAY = 'ray==2.60.0';
const PARTS = 16;
/** The pack makes 20 shards. Some parts have one more than others. */
const OPTIONS = ['--max-shard-samples', '3', '--resize', '128'];
const LIMIT_MS = 240_000;

const root = fileURLToPath(new URL('..', import.meta.url));
const source = path.join(root, 'examples/photos');
const program = `${process.execPath} ${path.join(root, 'packages/cli/lib/main.js')}`;
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'shardtool-cluster-'));
const chosen = process.argv.slice(2);
const daemons = [];

try {
  const alone = path.join(work, 'alone');
  execFileSync('bash', ['-c', `${program} pack ${source} ${alone} ${OPTIONS.join(' ')} --quiet`], { stdio: 'inherit' });
  const expected = digestOf(alone);
  for (const [name, run] of [
    ['slurm', slurm],
    ['ray', ray],
  ]) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const output = path.join(work, name);
    const version = await run(output);
    if (digestOf(output) !== expected) throw new Error(`${name}: the bytes differ from those of one process.`);
    console.log(`${name}: ${PARTS} parts made the bytes of one process (${version}).`);
  }
} finally {
  for (const daemon of daemons.reverse()) daemon.kill('SIGTERM');
  await Promise.all(daemons.map((daemon) => daemon.exitCode ?? new Promise((resolve) => daemon.once('exit', resolve))));
  fs.rmSync(work, { recursive: true, force: true });
}

/** One hash of all files of a folder and their names. */
function digestOf(folder) {
  const hash = createHash('sha256');
  for (const file of fs.readdirSync(folder, { recursive: true }).sort()) {
    const at = path.join(folder, file);
    if (fs.statSync(at).isFile()) hash.update(file).update('\0').update(fs.readFileSync(at));
  }
  return hash.digest('hex');
}

async function slurm(output) {
  const folder = path.join(work, 'slurm-state');
  fs.mkdirSync(folder);
  const munge = mungeSocket(folder);
  const configuration = path.join(folder, 'slurm.conf');
  const host = os.hostname().split('.')[0];
  fs.writeFileSync(
    configuration,
    `ClusterName=shardtool
SlurmctldHost=${host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=${munge}
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=${folder}/ctld
SlurmdSpoolDir=${folder}/slurmd
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdPidFile=${folder}/slurmd.pid
SlurmctldLogFile=${folder}/slurmctld.log
SlurmdLogFile=${folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
NodeName=${host} NodeAddr=127.0.0.1 CPUs=${os.availableParallelism()} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
`,
  );
  const env = { ...process.env, SLURM_CONF: configuration, SHARDTOOL: program };
  start('slurmctld', ['-D', '-c', '-f', configuration], env);
  await sleep(2000);
  start('slurmd', ['-D', '-c', '-f', configuration], env);
  const version = execFileSync('sbatch', ['--version'], { env, encoding: 'utf8' }).trim();
  const script = path.join(root, 'examples/cluster/pack.sbatch');
  const log = `--output=${folder}/%a.log`;
  const args = ['--parsable', '--cpus-per-task=1', log, '--export=ALL', script, source, output, ...OPTIONS];
  const job = await until('Slurm takes the job', () => {
    const { status, stdout } = spawnSync('sbatch', args, { env, encoding: 'utf8', cwd: root });
    return status === 0 && stdout.trim();
  });
  await until('the array ends', () => {
    const { stdout } = spawnSync('squeue', ['--noheader', '--jobs', job], { env, encoding: 'utf8' });
    return stdout.trim() === '';
  });
  if (!fs.existsSync(path.join(output, 'dataset.json'))) {
    const logs = fs.readdirSync(folder).filter((file) => file.endsWith('.log'));
    for (const file of logs) console.error(`== ${file}\n${fs.readFileSync(path.join(folder, file), 'utf8')}`);
    throw new Error('slurm: the array has ended, and no part committed the dataset.');
  }
  return version;
}

/** Starts munge with a new key, and returns its socket. */
function mungeSocket(folder) {
  const key = path.join(folder, 'munge.key');
  fs.writeFileSync(key, Buffer.from(Array.from({ length: 128 }, () => Math.floor(Math.random() * 256))), {
    mode: 0o400,
  });
  const socket = path.join(folder, 'munge.socket');
  const files = ['pid', 'log', 'seed'].flatMap((kind) => [`--${kind}-file`, path.join(folder, `munge.${kind}`)]);
  start('munged', ['--foreground', '--force', '--key-file', key, '--socket', socket, ...files], process.env);
  return socket;
}

async function ray(output) {
  const venv = path.join(root, 'bench/.cache/venv/ray');
  const python = path.join(venv, 'bin/python');
  if (!fs.existsSync(python)) execFileSync('python3', ['-m', 'venv', venv], { stdio: 'inherit' });
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', RAY], { stdio: 'inherit' });
  const script = path.join(root, 'examples/cluster/ray_pack.py');
  const { status } = spawnSync(python, [script, source, output, String(PARTS), ...OPTIONS], {
    env: { ...process.env, SHARDTOOL: program },
    stdio: 'inherit',
    timeout: LIMIT_MS,
  });
  if (status !== 0) throw new Error('ray: the script failed.');
  return RAY;
}

function start(command, args, env) {
  const daemon = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'ignore'] });
  daemon.on('error', (error) => {
    throw new Error(`${command} cannot be started: install slurm-wlm and munge.`, { cause: error });
  });
  daemons.push(daemon);
}

/** Calls `ask` twice per second until it returns an answer. */
async function until(what, ask) {
  for (let waited = 0; waited < LIMIT_MS; waited += 500) {
    const answer = ask();
    if (answer) return answer;
    await sleep(500);
  }
  throw new Error(`Timed out while waiting until ${what}.`);
}
