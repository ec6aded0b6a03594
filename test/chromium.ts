/** Debian's chromium if it is installed, preferably the headless variant, which needs half of the CPU time. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const EXECUTABLES = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const executable = EXECUTABLES.find((file) => existsSync(file));

export const hasChromium = executable !== undefined;

if (!hasChromium) {
  const said = `${EXECUTABLES.join(' or ')} is not there: what a browser shows is not tested ("apt-get install chromium-headless-shell")`;
  if (process.env.SHARDTOOL_REQUIRE_CHROMIUM) throw new Error(said);
  console.warn(said);
}

export function launchChromium(): Promise<Browser> {
  // By default it starts a process per page, and one in advance, which suits a person with many open sites.
  const args = ['--renderer-process-limit=1'];
  // Its sandbox does not work for root.
  if (process.getuid?.() === 0) args.push('--no-sandbox');
  return chromium.launch({ executablePath: executable!, args });
}
