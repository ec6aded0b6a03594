/** Says on standard error, at once, when this process begins to wait for the lock of another one. */
export async function showWaiting(): Promise<void> {
  const { escapeControls, onWaiting } = await import('@shardtool/base');
  // A bar may be on the line.
  const begin = process.stderr.isTTY ? '\r\x1b[K' : '';
  onWaiting((message) => process.stderr.write(`${begin}${escapeControls(message)}\n`));
}
