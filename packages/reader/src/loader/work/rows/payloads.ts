import { changedSincePacked, crc32, SampleDecodeError } from '@shardtool/base';
import { checkedCropIndex, cropIndexOf, fieldPayload, headerOf, nameTable } from '@shardtool/format';
import type { CheckedAnnotations } from '../../../annotations/options.js';
import { readAnnotations } from '../../../annotations/read.js';
import type { StoredImage } from '../../../codec/npy.js';
import { notAValue } from '../../../dataset/fields/field-bytes.js';
import type { ExtraFieldImage } from '../../../decode/decoded.js';
import type { GivenAnnotations } from '../../../transform/annotations.js';
import { arenaView } from '../../read/arena.js';
import { ColumnTexts } from '../../ring/column-texts.js';
import type { Control } from '../../ring/control.js';
import { type ExtraField, type Part, PartTable } from '../../ring/extra-fields.js';
import { IN_ARENA, type Job, UNCHECKED } from '../../ring/job.js';
import { ShardPaths, type ShardPathsBuffers } from '../../ring/shard-paths.js';
import { type MemoryPlan, slotAddress } from '../../ring/slots.js';
import type { RaggedRows } from '../../setup/decoder-output.js';
import { ShardImages } from './shard-images.js';

/** Where the stored bytes of samples are, and which of them a sample has. */
export interface PayloadPlaces {
  readonly arena: readonly SharedArrayBuffer[];
  readonly plan: MemoryPlan;
  /** Rows of a full batch. */
  readonly rows: number;
  readonly extraFields: readonly ExtraField[];
  readonly annotations: CheckedAnnotations | null;
  /** Several images per sample: then there are no extra fields, and the parts of a sample are its images. */
  readonly ragged: RaggedRows | null;
  /** Memory of a {@link PartTable}. */
  readonly parts: SharedArrayBuffer;
  /** Memory of {@link ColumnTexts}. */
  readonly texts: readonly SharedArrayBuffer[];
  /** Files of the shards, if workers may read images themselves. Otherwise empty. */
  readonly shardPaths: ShardPathsBuffers;
  /** All images are uncompressed, so only their crops are read from shards if nothing is checked. */
  readonly readsCrops: boolean;
}

/** The extra fields and annotations of an image. */
interface Extras {
  readonly images: readonly ExtraFieldImage[];
  /** The bytes of the fields that a step looks at. */
  readonly fields: Readonly<Record<string, Uint8Array>>;
  readonly given: GivenAnnotations | null;
}
const NO_EXTRAS: Extras = { images: [], fields: {}, given: null };

/** An encoded image with its crop index. The crop index is null if there is none. */
export interface EncodedImage {
  readonly bytes: Uint8Array;
  readonly cropIndex: Uint8Array | null;
}

/** An encoded image with everything that is stored with it. */
export interface ImageWithExtras extends EncodedImage, Extras {}

/** The stored bytes of the sample of a job, from the arena or from its shard. Their checksums are checked, unless checks are off. */
export class Payloads {
  readonly #places: PayloadPlaces;
  readonly #shardImages: ShardImages;
  readonly #parts: PartTable;
  readonly #texts: ColumnTexts;

  constructor(places: PayloadPlaces, control: Control) {
    const { plan, rows, extraFields, ragged, parts, texts, shardPaths } = places;
    this.#places = places;
    this.#shardImages = new ShardImages(new ShardPaths(shardPaths), control, plan.workers);
    this.#parts = new PartTable({ slots: plan.slots, rows, parts: ragged?.max ?? extraFields.length }, parts);
    this.#texts = new ColumnTexts({ slots: plan.slots, rows }, texts);
  }

  /** The image of a job, if only its crop is read from the shard. Otherwise null. Throws FileError. */
  unread(job: Job): StoredImage | null {
    const isUnread = job.shard !== IN_ARENA && this.#places.readsCrops && job.crc32 === UNCHECKED;
    return isUnread ? this.#shardImages.at(job) : null;
  }

  /**
   * The image and its crop index, and its orientation in `job` if the index of the shard does not list it. Throws the errors of
   * {@link bytes}.
   */
  encoded(job: Job): EncodedImage {
    const bytes = this.bytes(job);
    if (job.orientation === 0) job.orientation = headerOf(bytes)?.orientation ?? 1;
    return { bytes, cropIndex: this.#cropIndex(job) };
  }

  /** Like {@link encoded}, with the extra fields and annotations of the image. */
  withExtras(job: Job): ImageWithExtras {
    const { bytes, cropIndex } = this.encoded(job);
    const { images, fields, given } = this.#places.extraFields.length === 0 ? NO_EXTRAS : this.#extras(job);
    return { bytes, cropIndex, images, fields, given };
  }

  /** The bytes of the image, valid until the next job. Throws {@link SampleDecodeError}, FileError and CutImage. */
  bytes(job: Job): Uint8Array {
    const isInArena = job.shard === IN_ARENA;
    const bytes = isInArena ? this.#inArena(job.offset, job.bytes) : this.#shardImages.whole(job);
    checkBytes(bytes, job.crc32, 'it');
    return bytes;
  }

  /** Image `i` of a sample with several images; null if it has fewer. Throws {@link SampleDecodeError}. */
  raggedImage({ slot, row }: Job, i: number): Uint8Array | null {
    const part = this.#parts.get(slot, row, i);
    return part && this.#payload(part, 'it');
  }

  /** The bytes of extra field `i` of the sample, which is called `field`. Throws {@link SampleDecodeError} if it has none. */
  field({ slot, row }: Job, i: number, field: string): Uint8Array {
    const part = this.#parts.get(slot, row, i);
    if (part === null) throw new SampleDecodeError({}, `it has no field "${field}"`);
    return this.#payload(part, `its field "${field}"`);
  }

  close(): void {
    this.#shardImages.close();
  }

  /**
   * The crop index of the image. Null if there is none, or if it is damaged: then the image is decoded without it. It is checked each
   * time, because it is short, and a damaged one may give wrong pixels.
   */
  #cropIndex({ cropOffset, cropBytes, cropCrc32 }: Job): Uint8Array | null {
    if (cropBytes === 0) return null;
    const stored = this.#inArena(cropOffset, cropBytes);
    return cropCrc32 === UNCHECKED ? cropIndexOf(stored) : checkedCropIndex(stored, cropCrc32);
  }

  /** The extra fields and annotations of the image. Throws {@link SampleDecodeError}. */
  #extras({ slot, row, bucket }: Job): Extras {
    const { plan, annotations, extraFields } = this.#places;
    const images: ExtraFieldImage[] = [];
    const fields = nameTable<Uint8Array>();
    const annotated = nameTable<Uint8Array>();
    for (const [i, { field, kind }] of extraFields.entries()) {
      const part = this.#parts.get(slot, row, i);
      if (part === null) {
        if (kind === 'field') continue;
        throw new SampleDecodeError({}, `it has no field "${field}"`);
      }
      if (kind === 'columns') {
        annotated[field] = this.#texts.get(slot, part);
        continue;
      }
      const bytes = this.#payload(part, `its field "${field}"`);
      if (kind === 'field') fields[field] = bytes;
      else if (kind === 'annotation') annotated[field] = bytes;
      else if (kind !== 'array') {
        const target = slotAddress(plan, slot) + plan.extraFields[i]! + row * plan.rowBytes[bucket]!.extraFields[i]!;
        images.push({ field, kind, bytes, target });
      }
    }
    return { images, fields, given: annotations && readAnnotations(annotations, annotated) };
  }

  /** The bytes of an extra field as they were packed. `what` names it in errors. */
  #payload({ offset, bytes, msgpack, crc32: expected }: Part, what: string): Uint8Array {
    let payload: Uint8Array;
    try {
      payload = fieldPayload(this.#inArena(offset, bytes), msgpack);
    } catch (cause) {
      throw new SampleDecodeError({}, `${what} ${notAValue(cause)}`);
    }
    checkBytes(payload, expected, what);
    return payload;
  }

  #inArena(offset: number, bytes: number): Uint8Array {
    return arenaView(this.#places.arena, offset, bytes);
  }
}

function checkBytes(bytes: Uint8Array, expected: number, what: string): void {
  if (expected === UNCHECKED) return;
  const actual = crc32(bytes);
  if (actual !== expected) throw new SampleDecodeError({}, `${what} ${changedSincePacked(actual, expected)}`);
}
