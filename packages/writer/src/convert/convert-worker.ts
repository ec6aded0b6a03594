/** A worker thread of a conversion. */

import { answer, sayFree, takeMessages } from '../workers/worker-jobs.js';
import { report } from '../workers/worker-report.js';
import { type ConvertJob, convertNumbered, type NumberedShard } from './convert-job.js';

takeMessages((job: ConvertJob) => {
  answer<NumberedShard>(() => convertNumbered(job, report, sayFree));
});
