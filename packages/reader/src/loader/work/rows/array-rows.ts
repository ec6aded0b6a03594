import { NpyError, SampleDecodeError } from '@shardtool/base';
import { NpyRowCopier, OtherNpyRow } from '@shardtool/format';
import type { KernelMemory } from '../../../kernels/kernel-memory.js';
import type { ExtraField } from '../../ring/extra-fields.js';
import type { Job } from '../../ring/job.js';
import { type MemoryPlan, slotAddress } from '../../ring/slots.js';
import type { Payloads } from './payloads.js';
import type { RowForm, Rows } from './rows.js';

/** Copies the arrays of samples to their rows of a slot. */
export class ArrayRows implements Rows {
  readonly #fields: readonly ExtraField[];
  readonly #plan: MemoryPlan;
  readonly #memory: KernelMemory;
  readonly #payloads: Payloads;
  /** One for each extra field that is an array. */
  readonly #copiers: readonly (NpyRowCopier | undefined)[];

  constructor({ extraFields, plan, memory }: RowForm, payloads: Payloads) {
    this.#fields = extraFields;
    this.#plan = plan;
    this.#memory = memory;
    this.#payloads = payloads;
    this.#copiers = extraFields.map(({ array }) => array && new NpyRowCopier(array));
  }

  /** Throws {@link OtherArray} and {@link SampleDecodeError}. */
  fill(job: Job): void {
    for (const [i, { field }] of this.#fields.entries()) {
      const bytes = this.#payloads.field(job, i, field);
      const rowBytes = this.#plan.rowBytes[job.bucket]!.extraFields[i]!;
      const address = slotAddress(this.#plan, job.slot) + this.#plan.extraFields[i]! + job.row * rowBytes;
      try {
        this.#copiers[i]!.copy(bytes, new Uint8Array(this.#memory.buffer, address, rowBytes));
      } catch (error) {
        if (error instanceof OtherNpyRow) throw new OtherArray(field, error);
        if (error instanceof NpyError) {
          throw new SampleDecodeError({}, `its field "${field}" is not what its name says (${error.message})`);
        }
        throw error;
      }
    }
  }
}

/** The array of a field cannot be a row of its batch. */
export class OtherArray extends Error {
  readonly field: string;

  constructor(field: string, { message }: OtherNpyRow) {
    super(message);
    this.field = field;
  }
}
