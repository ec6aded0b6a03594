/**
 * A decode worker: takes jobs out of shared memory, checks the bytes, decodes and transforms the image straight into its
 * row of the batch slot. It blocks while there is nothing to do; it awaits only where a codec is asynchronous.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { crc32Hex, SampleDecodeError } from '@shardtool/format';
import { createDecoder, type DecoderOptions } from '../decoder.js';
import { arenaView } from './arena.js';
import { Control, type ControlBuffers, emptyJob, type Job } from './control.js';
import { type MemoryPlan, scratchAddress, slotAddress } from './slots.js';

export interface DecodeWorkerData {
  readonly worker: number;
  readonly control: ControlBuffers;
  readonly arena: readonly SharedArrayBuffer[];
  readonly memory: WebAssembly.Memory;
  readonly plan: MemoryPlan;
  /** Null: the bytes are checked and stay encoded. */
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch'> | null;
  /** Images have no common size: each goes to the main thread as an array of its own. */
  readonly list: boolean;
}

/** A sample that could not be decoded. `reason` is a sentence without shard and key, which the main thread knows. */
export interface BadRow {
  readonly kind: 'bad';
  readonly slot: number;
  readonly row: number;
  readonly reason: string;
}

/** An image of a list batch: uint8 [height, width, 3]. */
export interface ListImage {
  readonly kind: 'image';
  readonly slot: number;
  readonly row: number;
  readonly pixels: Uint8Array;
  readonly height: number;
  readonly width: number;
}

export type WorkerMessage = { readonly kind: 'ready' } | BadRow | ListImage;

const data = workerData as DecodeWorkerData;
const control = new Control(data.control);

/** Counted first, so that the main thread, which may look at the slot before it hears the message, waits for it. */
function post(message: BadRow | ListImage, transfer: ArrayBuffer[] = []): void {
  control.countPosted(message.slot);
  parentPort!.postMessage(message, transfer);
}

async function run(): Promise<void> {
  const decoder =
    data.decoder === null
      ? null
      : await createDecoder({
          ...data.decoder,
          memory: data.memory,
          scratch: { offset: scratchAddress(data.plan, data.worker), bytes: data.plan.scratchBytes },
        });
  parentPort!.postMessage({ kind: 'ready' } satisfies WorkerMessage);
  const job = emptyJob();

  const decode = (bytes: Uint8Array): void | Promise<void> => {
    if (decoder === null) return;
    if (data.list) {
      return decoder.decodeToArray(bytes, job).then(({ pixels, height, width }) => {
        post({ kind: 'image', slot: job.slot, row: job.row, pixels, height, width }, [pixels.buffer as ArrayBuffer]);
      });
    }
    return decoder.decode(bytes, job, slotAddress(data.plan, job.slot) + job.row * data.plan.rowBytes);
  };

  while (control.take(job)) {
    try {
      const bytes = arenaView(data.arena, job.offset, job.bytes);
      checkBytes(bytes, job);
      const pending = decode(bytes);
      if (pending !== undefined) await pending;
    } catch (error) {
      // Anything else is no fault of the sample: this worker ends, and with it the loop, with the error as the reason.
      if (!(error instanceof SampleDecodeError)) throw error;
      post({ kind: 'bad', slot: job.slot, row: job.row, reason: error.reason });
    }
    if (decoder !== null && decoder.warnings > 0) control.countWarnings(decoder.takeWarnings());
    control.finish(job.slot);
  }
  decoder?.close();
}

function checkBytes(bytes: Uint8Array, job: Job): void {
  if (job.crc32 < 0) return;
  const actual = crc32(bytes);
  if (actual !== job.crc32) {
    const expected = crc32Hex(job.crc32);
    throw new SampleDecodeError(
      {},
      `it has changed since it was packed: crc32 ${crc32Hex(actual)}, the index says ${expected}`,
    );
  }
}

await run();
