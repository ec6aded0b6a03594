import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';

const venv = process.env.SHARDTOOL_PYTHON ?? '';
const candidates = [
  path.join(path.dirname(venv), 'rclone'),
  ...(process.env.PATH ?? '').split(':').map((folder) => path.join(folder, 'rclone')),
];

/** rclone, whose S3 server is an independent implementation; null if it is not installed. */
export const rclone = candidates.find((file) => path.isAbsolute(file) && fs.existsSync(file)) ?? null;

if (rclone === null && process.env.SHARDTOOL_REQUIRE_RCLONE)
  throw new Error('rclone is missing: install test/python/requirements.txt.');

export const S3_KEYS = {
  AWS_ACCESS_KEY_ID: 'referee',
  AWS_SECRET_ACCESS_KEY: 'not-so-secret',
  AWS_REGION: 'us-east-1',
};

export interface S3Server {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Starts `rclone serve s3` on a folder, whose folders are the buckets. */
export function s3Server(folder: string): Promise<S3Server> {
  const keys = `${S3_KEYS.AWS_ACCESS_KEY_ID},${S3_KEYS.AWS_SECRET_ACCESS_KEY}`;
  const where = (address: string) => ['--addr', address, '--vfs-cache-mode', 'off', '--config', '/dev/null', folder];
  return started(rclone!, (address) => ['serve', 's3', '--auth-key', keys, ...where(address)]);
}

/** Starts versitygw on a folder, whose folders are the buckets. */
export function versitygwServer(binary: string, folder: string): Promise<S3Server> {
  return started(binary, (address) => ['--port', address, '--quiet', 'posix', folder], {
    ROOT_ACCESS_KEY: S3_KEYS.AWS_ACCESS_KEY_ID,
    ROOT_SECRET_KEY: S3_KEYS.AWS_SECRET_ACCESS_KEY,
  });
}

async function started(
  binary: string,
  args: (address: string) => readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<S3Server> {
  const port = await freePort();
  const child = spawn(binary, args(`127.0.0.1:${port}`), { stdio: 'ignore', env: { ...process.env, ...env } });
  for (let waited = 0; !(await answers(port)); waited++) {
    if (waited > 200 || child.exitCode !== null) throw new Error(`${path.basename(binary)} does not start`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { endpoint: `http://127.0.0.1:${port}`, stop: () => ended(child) };
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
