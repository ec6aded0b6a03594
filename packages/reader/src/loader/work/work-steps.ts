/** The work of a worker in addition to decoding: custom steps and mixing. */
import { nameTable } from '@shardtool/format';
import type { Decoder } from '../../decode/decoder.js';
import { type PixelValues, pixelValues } from '../../transform/pixel-values.js';
import { FIRST_NUMBER, SampleRandom } from '../../transform/random.js';
import { BatchFacts } from '../ring/batch-facts.js';
import type { Job } from '../ring/job.js';
import { type RowBytes, slotAddress } from '../ring/slots.js';
import type { BatchStep, FieldsStep, PixelsStep, StepBatch, StepContext } from '../setup/custom-steps.js';
import type { DecodeWorkerData } from './decode-worker.js';
import { type LoadedStep, loadStep } from './load-step.js';
import { BatchMixer } from './mix/batch-mixer.js';
import type { RowSteps } from './rows/rows.js';

/** Thrown if a custom step dropped the sample. */
export class DroppedSample extends Error {}

/** A custom step threw. The stack is that of the thrown error. */
export class CustomStepFailure extends Error {
  override readonly stack: string;

  constructor(step: string, thrown: unknown) {
    super(`the step "${step}" threw: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    this.stack = thrown instanceof Error && thrown.stack !== undefined ? thrown.stack : String(thrown);
  }
}

/** Identifies a sample. */
type Identity = Pick<Job, 'epoch' | 'source' | 'number' | 'occurrence'>;

/** The work of a worker in addition to decoding. */
export interface WorkSteps extends RowSteps {
  /** Whether there are steps on samples. */
  readonly hasRowSteps: boolean;
  /** Runs the batch step on a complete batch, and mixes it. */
  wholeBatch(slot: number, rows: number, bucket: number): Promise<void>;
}

/** Loads the steps in this thread. Null if there are no steps and batches are not mixed. */
export async function loadWorkSteps(data: DecodeWorkerData, decoder: Decoder): Promise<WorkSteps | null> {
  const fields = await loadStep<FieldsStep>('fields', data.steps.fields);
  const pixels = await loadStep<PixelsStep>('pixels', data.steps.pixels);
  const batch = await loadStep<BatchStep>('batch', data.steps.batch);
  if (fields === null && pixels === null && batch === null && data.mixes.length === 0) return null;
  const { transform, seeds, outputSize, covers } = data.decoder!;
  const { dtype, layout } = transform;
  const { channels } = transform.format;
  const sizeOf = (bucket: number) => covers?.[bucket]?.outputShape ?? outputSize!;
  const shapeOf = (bucket: number): readonly [number, number, number] => {
    const { width, height } = sizeOf(bucket);
    return layout === 'nhwc' ? [height, width, channels] : [channels, height, width];
  };
  const facts = new BatchFacts({ slots: data.plan.slots, rows: data.rows }, data.facts);
  const mixer = data.mixes.length > 0 ? new BatchMixer(data, decoder, facts) : null;

  const randomOf = ({ epoch, source, number, occurrence }: Identity, from: number): SampleRandom =>
    new SampleRandom(seeds[source]!).start(epoch, number, occurrence, from);
  const contextOf = (identity: Identity, from: number, options: unknown): StepContext => {
    const random = randomOf(identity, from);
    return { epoch: identity.epoch, number: identity.number, random: () => random.next(), options };
  };
  const valuesAt = (address: number, bytes: number): PixelValues =>
    pixelValues(new Uint8Array(data.memory.buffer, address, bytes), dtype);

  return {
    hasRowSteps: fields !== null || pixels !== null,
    async row({ bytes: image, cropIndex, images: extraFields, fields: values, given: annotations }, job, target) {
      let encoded = image;
      let others = extraFields;
      const { clock } = decoder;
      let begun = performance.now();
      if (fields !== null) {
        const more = extraFields.map(({ field, bytes }) => [field, bytes] as const);
        const given = nameTable([...Object.entries(values), ...more, ['image', image] as const]);
        const changed = await calling('fields', fields, (run) =>
          run(given, contextOf(job, FIRST_NUMBER.fieldsStep, fields.options)),
        );
        if (changed === null) throw new DroppedSample('the step "fields" dropped it');
        encoded = changed.image ?? image;
        others = extraFields.map((one) => ({
          ...one,
          bytes: (Object.hasOwn(changed, one.field) ? changed[one.field] : undefined) ?? one.bytes,
        }));
      }
      const before = decoder.warnings;
      if (clock.isOn) clock.ms += performance.now() - begun;
      await decoder.decode(encoded, job, target, others, encoded === image ? cropIndex : null, annotations);
      if (pixels === null) return;
      begun = performance.now();
      const kept = await calling('pixels', pixels, (run) =>
        run(valuesAt(target, data.plan.rowBytes[job.bucket]!.image), {
          ...contextOf(job, FIRST_NUMBER.pixelsStep, pixels.options),
          shape: shapeOf(job.bucket),
          dtype,
          warnings: decoder.warnings - before,
        }),
      );
      if (clock.isOn) clock.ms += performance.now() - begun;
      if (kept === null) throw new DroppedSample('the step "pixels" dropped it');
    },
    async wholeBatch(slot, rows, bucket) {
      const rowBytes = data.plan.rowBytes[bucket]!;
      const identity = facts.first(slot);
      const address = slotAddress(data.plan, slot);
      if (batch !== null) {
        const whole: StepBatch = {
          images: valuesAt(address, rows * rowBytes.image),
          shape: [rows, ...shapeOf(bucket)],
          dtype,
          labels: facts.labels(slot, rows),
          ...extraFieldsAt(slot, rows, rowBytes),
        };
        await calling('batch', batch, (run) => run(whole, contextOf(identity, FIRST_NUMBER.batchStep, batch.options)));
      }
      mixer?.mix({ slot, rows, ...sizeOf(bucket) }, randomOf(identity, FIRST_NUMBER.mix));
    },
  };

  function extraFieldsAt(
    slot: number,
    rows: number,
    { extraFields }: RowBytes,
  ): Pick<StepBatch, 'masks' | 'extraImages'> {
    const masks = nameTable<Uint8Array>();
    const extraImages = nameTable<PixelValues>();
    for (const [i, { field, kind }] of data.extraFields.entries()) {
      const rowBytes = extraFields[i]!;
      const address = slotAddress(data.plan, slot) + data.plan.extraFields[i]!;
      if (kind === 'image') extraImages[field] = valuesAt(address, rows * rowBytes);
      else if (kind === 'mask') masks[field] = new Uint8Array(data.memory.buffer, address, rows * rowBytes);
    }
    return { masks, extraImages };
  }
}

async function calling<Kind extends (...values: never[]) => unknown, Result>(
  name: string,
  step: LoadedStep<Kind>,
  call: (run: Kind) => Result,
): Promise<Awaited<Result>> {
  try {
    return await call(step.run);
  } catch (error) {
    throw new CustomStepFailure(name, error);
  }
}
