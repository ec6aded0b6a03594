/** A worker thread of a pack. */
import { report } from '../../crew/crew-member.js';
import { answer, sayFree, takeMessages } from '../../crew/worker-jobs.js';
import { type PackJob, PackJobs, type PackNews, type PackResult } from './pack-jobs.js';

const jobs = new PackJobs(report, false);

takeMessages((message: PackNews | PackJob) => {
  if (message.type === 'files' || message.type === 'setting') jobs.take(message);
  else answer<PackResult>(() => jobs.work(message, sayFree));
});
