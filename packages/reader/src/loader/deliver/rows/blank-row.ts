import { drawnValues, drawsAddress, type ViewLayout, viewAddress, viewBytes } from '../../../views/slot-layout.js';
import { slotAddress } from '../../ring/slots.js';
import type { BatchOutput } from '../../setup/batch-output.js';
import type { Engine } from '../../work/engine.js';
import type { PendingBatch } from '../pending-batch.js';

/** Makes a row, whose sample is skipped, invalid: its pixels and arrays are zeros, and its other values are null. */
export function blankRow(pending: PendingBatch, row: number, engine: Engine, output: BatchOutput): void {
  pending.valid[row] = 0;
  pending.skipped.add(row);
  engine.facts.setBlank(pending.slot, row);
  for (const values of Object.values(pending.fields)) values[row] = null;
  const { slot, rows } = pending;
  if (output.kind === 'pixels' && output.views !== null) {
    blankViews(engine, { slot, row, rows }, output.views);
    return;
  }
  const { images, parts } = engine.contents(pending);
  const clear = (bytes: Uint8Array) => bytes.fill(0, (row * bytes.length) / rows, ((row + 1) * bytes.length) / rows);
  parts.forEach(clear);
  if (output.kind === 'pixels' && output.ragged === null) {
    clear(images);
    engine.facts.setShown(slot, row, null);
  } else if (output.kind === 'list') pending.list[row] = { pixels: new Uint8Array(0), height: 0, width: 0 };
}

function blankViews(
  { plan, memory }: Engine,
  { slot, row, rows }: { readonly slot: number; readonly row: number; readonly rows: number },
  views: ViewLayout,
): void {
  const address = slotAddress(plan, slot);
  const blank = (offset: number, length: number) => new Uint8Array(memory.buffer, address + offset, length).fill(0);
  for (const [group, { count }] of views.groups.entries()) {
    for (let view = 0; view < count; view++) {
      blank(viewAddress(views, plan.extraFields, { group, view, row, rows }), viewBytes(views.groups[group]!));
    }
  }
  if (views.draws.length === 0) return;
  blank(drawsAddress(views, plan.extraFields, row), views.transforms.length * drawnValues(views.draws) * 4);
}
