/** The worker thread of a pack: helps to measure the files, then writes whole shards. */
import { parentPort } from 'node:worker_threads';
import { answer, report } from './crew-member.js';
import { type FileTable, receiveFileTable } from './file-table.js';
import { type LayoutChoice, layoutOfChoice } from './layout-choice.js';
import { type MeasureTurn, measureSlices } from './measure.js';
import type { RecodeOptions } from './options.js';
import { createRecoder } from './recode.js';
import { type ShardJob, type ShardResult, type ShardSetting, writeShard } from './shard-job.js';

/** What {@link ShardSetting} is made of in each worker. */
export interface PackSetting extends Omit<ShardSetting, 'layout' | 'files' | 'sample' | 'recode'> {
  readonly layout: LayoutChoice;
  readonly fields: readonly string[];
  readonly recode: RecodeOptions | null;
}

/** Told to every worker before the jobs that need it. */
export type PackNews =
  | { readonly type: 'files'; readonly root: string; readonly files: FileTable }
  | ({ readonly type: 'setting' } & PackSetting);

export type PackJob =
  | { readonly type: 'measure'; readonly turn: MeasureTurn }
  | ({ readonly type: 'shard' } & ShardJob);

/** Null where files were measured. */
export type PackResult = ShardResult | null;

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
    void answer<PackResult>(() => (message.type === 'measure' ? measure(message.turn) : write(message)));
  }
});

async function prepare({ layout: choice, recode, fields, ...rest }: PackSetting): Promise<ShardSetting> {
  const layout = await layoutOfChoice(choice);
  return {
    ...rest,
    layout,
    files: files!,
    sample: { root, fields, imageOnly: layout.imageOnly ?? false },
    recode: recode && (await createRecoder(recode)),
  };
}

async function write(job: ShardJob): Promise<ShardResult> {
  return writeShard(job, await setting!, report);
}

function measure(turn: MeasureTurn): null {
  for (const measured of measureSlices(root, files!, turn)) report(measured, 0);
  return null;
}
