import { escapeControls } from '@shardtool/base/text';

let format: 'text' | 'json' = 'text';

/** Format in which {@link log} writes from now on: the option --log-format. */
export function setLogFormat(chosen: 'text' | 'json'): void {
  format = chosen;
}

export function isJsonLog(): boolean {
  return format === 'json';
}

/**
 * Writes a line to standard error. As JSON it is an object with `time`, `level`, `message` and the given fields; as text it is the
 * message, after the time if there is no terminal and `hasTime`.
 */
export function log(
  level: 'info' | 'warning' | 'error',
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
  hasTime = false,
): void {
  const time = new Date().toISOString();
  if (format === 'json') {
    console.error(escapeControls(JSON.stringify({ time, level, message, ...fields })));
    return;
  }
  console.error(`${hasTime && process.stderr.isTTY !== true ? `${time.replace(/\.\d+/, '')} ` : ''}${message}`);
}
