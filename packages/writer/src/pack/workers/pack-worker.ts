/** A worker thread of a pack. */

import { answer, sayFree, takeMessages } from '../../workers/worker-jobs.js';
import { report } from '../../workers/worker-report.js';
import { type PackJob, PackJobs, type PackNews, type PackResult } from './pack-jobs.js';

const jobs = new PackJobs(report, false);

takeMessages((message: PackNews | PackJob) => {
  if (message.type === 'files' || message.type === 'setting') jobs.take(message);
  else answer<PackResult>(() => jobs.work(message, sayFree));
});
