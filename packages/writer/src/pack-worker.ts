/** The worker thread of a pack: measures slices of the files, then writes whole shards. */
import { statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { type LayoutName, layoutOf } from '@shardtool/format';
import { recordError } from './error-record.js';
import { type FileTable, pathAt, receiveFileTable } from './file-table.js';
import type { RecodeOptions } from './options.js';
import { createRecoder } from './recode.js';
import { type ShardJob, type ShardResult, type ShardSetting, writeShard } from './shard-job.js';
import type { Answer } from './worker-pool.js';

/** What all workers share; `progress` has two numbers a worker: files and source bytes done. */
export interface PackWorkerData {
  readonly worker: number;
  /** Not 0 at index 0: end as soon as the sample in hand is done. */
  readonly control: Int32Array;
  readonly progress: Float64Array;
}

/** What {@link ShardSetting} is made of in each worker. */
export interface PackSetting extends Omit<ShardSetting, 'layout' | 'files' | 'sample' | 'recode'> {
  readonly format: LayoutName;
  readonly fields: readonly string[];
  readonly recode: RecodeOptions | null;
}

/** Told to every worker before the jobs that need it. */
export type PackNews =
  | { readonly type: 'files'; readonly root: string; readonly files: FileTable }
  | ({ readonly type: 'setting' } & PackSetting);

export type PackJob =
  | { readonly type: 'measure'; readonly from: number; readonly to: number }
  | ({ readonly type: 'shard' } & ShardJob);

/** Null where files were measured. */
export type PackResult = ShardResult | null;

/** The pack was told to end; the error that counts is another one. */
class PackStopped extends Error {}

const { worker, control, progress } = workerData as PackWorkerData;
let root = '';
let files: FileTable | undefined;
let setting: Promise<ShardSetting> | undefined;

parentPort!.on('message', (message: PackNews | PackJob) => {
  if (message.type === 'files') {
    root = message.root;
    files = receiveFileTable(message.files);
  } else if (message.type === 'setting') {
    setting = prepare(message);
    setting.catch(() => undefined);
  } else {
    void answer(message);
  }
});

async function prepare({ format, recode, fields, ...rest }: PackSetting): Promise<ShardSetting> {
  const layout = await layoutOf(format);
  return {
    ...rest,
    layout,
    files: files!,
    sample: { root, fields },
    recode: recode && (await createRecoder(recode)),
  };
}

async function answer(job: PackJob): Promise<void> {
  let reply: Answer<PackResult>;
  try {
    reply = {
      result: job.type === 'measure' ? measure(job.from, job.to) : await writeShard(job, await setting!, report),
    };
  } catch (error) {
    reply = { error: recordError(error) };
  }
  parentPort!.postMessage(reply);
}

function measure(from: number, to: number): null {
  for (let file = from; file < to; file++) {
    files!.bytes[file] = sizeOf(root + pathAt(files!, file));
    progress[worker * 2]! += 1;
    if (Atomics.load(control, 0) !== 0) throw new PackStopped();
  }
  return null;
}

/** -1 where there is no such file, or no regular one: packing it will say why. */
function sizeOf(path: string): number {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat?.isFile() ? stat.size : -1;
  } catch {
    return -1;
  }
}

function report(doneFiles: number, bytes: number): void {
  progress[worker * 2]! += doneFiles;
  progress[worker * 2 + 1]! += bytes;
  if (Atomics.load(control, 0) !== 0) throw new PackStopped();
}
