/** Debian's chromium, where there is one. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const EXECUTABLE = '/usr/bin/chromium';

export const hasChromium = existsSync(EXECUTABLE);

if (!hasChromium) {
  const said = `${EXECUTABLE} is not there: what a browser shows is not tested ("apt-get install chromium")`;
  if (process.env.SHARDTOOL_REQUIRE_CHROMIUM) throw new Error(said);
  console.warn(said);
}

export function launchChromium(): Promise<Browser> {
  // Its sandbox takes a user that is not root.
  return chromium.launch({ executablePath: EXECUTABLE, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
}
