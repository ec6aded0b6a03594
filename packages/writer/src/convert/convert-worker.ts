/** A worker thread of a conversion. */
import { report } from '../crew/crew-member.js';
import { answer, takeMessages } from '../crew/worker-jobs.js';
import { type ConvertJob, convertNumbered, type NumberedShard } from './convert-job.js';

takeMessages((job: ConvertJob) => {
  answer<NumberedShard>(() => convertNumbered(job, report));
});
