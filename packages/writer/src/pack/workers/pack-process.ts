import { recordError, redirectWarnings } from '@shardtool/base';
import type { PackProgress } from '../../options.js';
import { packHere } from '../pack-here.js';
import { type ApartJob, type ApartNews, STOP } from './pack-apart.js';

const stopped = new AbortController();
let isStarted = false;

// The parent process also receives the signals, and decides what to do.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => stopped.abort());
process.on('message', (message: ApartJob | typeof STOP) => {
  if (message === STOP) stopped.abort();
  else if (!isStarted) {
    isStarted = true;
    void run(message);
  }
});

async function run({ source, output, options, tellsProgress }: ApartJob): Promise<void> {
  redirectWarnings((message) => tell({ type: 'warning', message }));
  const onProgress = (progress: PackProgress) => tell({ type: 'progress', progress });
  try {
    const given = { ...options, signal: stopped.signal, ...(tellsProgress && { onProgress }) };
    tell({ type: 'report', report: await packHere({ source, output, options: given }, true) });
  } catch (error) {
    tell({ type: 'error', error: recordError(error) });
  }
}

/** Sends a message to the parent process. If the parent has gone, the process ends with its result. */
function tell(news: ApartNews): void {
  if (process.connected) process.send!(news);
  else if (news.type === 'report' || news.type === 'error') process.exit();
}
