import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SlotStates, slotStateMemory } from './slot-states.js';

const batch = fc.record({ rows: fc.integer({ min: 1, max: 6 }), whole: fc.boolean(), troubled: fc.boolean() });

test('a slot is filling until its last row is finished, then whole if requested, then ready', () => {
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 8 }), (batches) => {
      const slots = new SlotStates(slotStateMemory(3));
      for (const { rows, whole, troubled } of batches) {
        slots.open(1, rows, whole);
        if (troubled) slots.countPosted(1);
        for (let row = 0; row < rows; row++) {
          expect(slots.state(1)).toBe('filling');
          const isMine = slots.finish(1);
          expect(isMine).toBe(row === rows - 1 && whole && !troubled);
        }
        expect(slots.state(1)).toBe(whole ? 'whole' : 'ready');
        if (troubled) {
          slots.reopen(1, 1);
          expect(slots.state(1)).toBe('filling');
          expect(slots.finish(1)).toBe(false);
        }
        if (whole) slots.finishWhole(1);
        expect(slots.state(1)).toBe('ready');
        expect(slots.posted(1)).toBe(troubled ? 1 : 0);
      }
      expect([slots.state(0), slots.state(2)]).toEqual(['ready', 'ready']);
    }),
  );
});

test('waiting for a slot to leave a state ends when it leaves it, or immediately if it already has', async () => {
  const slots = new SlotStates(slotStateMemory(1));
  slots.open(0, 1, true);
  const filled = slots.whenLeft(0, 'filling');
  slots.finish(0);
  await filled;
  await slots.whenLeft(0, 'filling');
  expect(slots.state(0)).toBe('whole');
  const whole = slots.whenLeft(0, 'whole');
  slots.finishWhole(0);
  await whole;
  await slots.whenLeft(0, 'whole');
  expect(slots.state(0)).toBe('ready');
});

test('wake() ends every wait, whatever the state', async () => {
  const slots = new SlotStates(slotStateMemory(2));
  slots.open(0, 1, false);
  slots.open(1, 0, true);
  const waits = [slots.whenLeft(0, 'filling'), slots.whenLeft(1, 'whole')];
  slots.wake();
  await Promise.all(waits);
  expect([slots.state(0), slots.state(1)]).toEqual(['filling', 'whole']);
});
