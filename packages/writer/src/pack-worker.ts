/** The worker thread of a pack: measures slices of the files, then writes whole shards. */
import { statSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { answer, report } from './crew-member.js';
import { type FileTable, pathAt, receiveFileTable } from './file-table.js';
import { type LayoutChoice, layoutOfChoice } from './layout-choice.js';
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
  | { readonly type: 'measure'; readonly from: number; readonly to: number }
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
    void answer<PackResult>(() => (message.type === 'measure' ? measure(message.from, message.to) : write(message)));
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

function measure(from: number, to: number): null {
  for (let file = from; file < to; file++) {
    files!.bytes[file] = sizeOf(root + pathAt(files!, file));
    report(1, 0);
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
