/** Mixes whole batches in their slots: images, extra images, masks and annotations. */
import { range } from '@shardtool/base';
import type { RowObjects } from '../../../annotations/mixed-objects.js';
import type { Size } from '../../../codec/codec.js';
import type { Decoder } from '../../../decode/decoder.js';
import { EffectKernels } from '../../../kernels/effects.js';
import { type DrawnSingleMix, drawMix, drawnParts } from '../../../transform/mixes/mix.js';
import { MOSAIC_PARTS } from '../../../transform/mixes/mosaic.js';
import type { SampleRandom } from '../../../transform/random.js';
import { valueBytes } from '../../../transform/values.js';
import type { BatchFacts } from '../../ring/batch-facts.js';
import { slotAddress } from '../../ring/slots.js';
import type { DecodeWorkerData } from '../decode-worker.js';
import { mixObjects, objectsOfRows, pastedRows, writeObjects } from './mix-objects.js';
import { type BatchImages, mixRows } from './mix-rows.js';
import { mosaicRows, type RowPixels } from './mosaic-rows.js';
import { pasteRows } from './paste-rows.js';

/** A batch in its slot, with images of this size. */
export interface BatchInSlot extends Size {
  readonly slot: number;
  readonly rows: number;
}

export class BatchMixer {
  readonly #data: DecodeWorkerData;
  readonly #decoder: Decoder;
  readonly #facts: BatchFacts;
  readonly #kernels: EffectKernels;

  constructor(data: DecodeWorkerData, decoder: Decoder, facts: BatchFacts) {
    this.#data = data;
    this.#decoder = decoder;
    this.#facts = facts;
    this.#kernels = new EffectKernels(data.memory);
  }

  /** Draws a mix for the batch, applies it, and records it in the facts of the batch. */
  mix({ slot, rows, width, height }: BatchInSlot, random: SampleRandom): void {
    const { annotations, extraFields, memory, mixes, plan } = this.#data;
    const isBlank = (row: number) => this.#facts.isBlank(slot, row);
    const withImage = range(rows).filter((row) => !isBlank(row));
    const mix = drawMix(mixes, { width, height }, rows, random, withImage);
    const address = slotAddress(plan, slot);
    const records = annotations && {
      memory: memory.buffer,
      address: address + plan.extraFields[extraFields.length]!,
      rows,
      annotations,
    };
    let objects: readonly RowObjects[] | null = records && objectsOfRows(records);
    const weights = Array<number>(rows).fill(1);
    for (const part of drawnParts(mix)) {
      const mixed = this.#mixPart(part, objects, { address, rows, width, height, isBlank });
      objects = mixed.objects;
      mixed.weights.forEach((weight, row) => {
        weights[row]! *= weight;
      });
    }
    this.#facts.setMix(slot, mix, weights);
    if (records !== null) writeObjects(objects!, records);
  }

  /** Applies one mix to the pixels of a batch. Returns its objects afterwards, and the share of its own image that each row keeps. */
  #mixPart(
    mix: DrawnSingleMix,
    objects: readonly RowObjects[] | null,
    batch: BatchImages,
  ): { readonly objects: readonly RowObjects[] | null; readonly weights: readonly number[] } {
    const { isBlank } = batch;
    const { transform } = this.#data.decoder!;
    const pictures = this.#pixelsOf(batch);
    const spare = (pixels: RowPixels, rows = 1) => this.#decoder.spare(rows * bytesOfRow(pixels));
    if (mix.kind === 'paste') {
      const pasted = pastedRows(mix, objects!, { width: batch.width, height: batch.height }, isBlank);
      for (const pixels of pictures) pasteRows(this.#kernels, pasted, pixels, spare(pixels));
      return { objects: pasted.map((row) => row.objects), weights: pasted.map(({ weight }) => weight) };
    }
    if (mix.kind === 'labels') mixRows(this.#kernels, mix, batch, transform, spare(pictures[0]!));
    else for (const pixels of pictures) mosaicRows(this.#kernels, mix, pixels, spare(pixels, MOSAIC_PARTS - 1));
    return {
      objects: objects && mixObjects(mix, objects, isBlank),
      weights: mix.rows.map(({ weight }) => weight),
    };
  }

  /** The images, extra images and masks of a batch. */
  #pixelsOf({ address, width, height }: BatchImages): RowPixels[] {
    const { decoder, extraFields, plan } = this.#data;
    const { dtype, layout, format } = decoder!.transform;
    const size = { width, height };
    const images =
      layout === 'nhwc'
        ? { ...size, planes: 1, pixelBytes: format.channels * valueBytes(dtype) }
        : { ...size, planes: format.channels, pixelBytes: valueBytes(dtype) };
    const extra = extraFields.flatMap(({ kind }, i): RowPixels[] => {
      const at = address + plan.extraFields[i]!;
      if (kind === 'image') return [{ ...images, address: at }];
      return kind === 'mask' ? [{ ...size, planes: 1, pixelBytes: 1, address: at }] : [];
    });
    return [{ ...images, address }, ...extra];
  }
}

function bytesOfRow({ width, height, planes, pixelBytes }: RowPixels): number {
  return width * height * planes * pixelBytes;
}
