/** The part of Node's `process` that our readers use, for browsers. */

export const process = {
  env: {} as Readonly<Record<string, string | undefined>>,
  platform: 'browser',
  execArgv: [] as readonly string[],
  emitWarning(message: string): void {
    console.warn(message);
  },
};
