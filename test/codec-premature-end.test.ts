import { expect, test } from 'vitest';
import { cut, fixture, type Picture, Workbench } from './codec-workbench.js';

const workbench = await Workbench.open();

/** Images whose rows are stored in order, so that a truncated image has the rows above complete. */
const singleScan = ['420', '444', '410', 'gray', 'cmyk', 'ycck', 'restart-rows', 'restart-blocks', 'arithmetic'];
const layered = ['progressive-420', 'progressive-444', 'arithmetic-progressive-422', 'scan-per-component'];

test.each(singleScan)('%s, truncated anywhere, gives exactly the rows that are stored', async (name) => {
  const bytes = fixture(`codec/${name}.jpg`);
  const whole = await workbench.decode(bytes);
  for (const part of [0.5, 0.7, 0.9]) {
    const start = bytes.subarray(0, Math.floor(bytes.length * part));
    let good = 0;
    for (let rows = 8; rows <= whole.height; rows += 12) {
      const top = await decodeTop(start, whole, rows);
      if (top === null) break;
      good = rows;
      expect(Buffer.compare(top.pixels, cut(whole, rectOf(whole, rows))), `${part} ${rows}`).toBe(0);
    }
    expect(good, `rows of ${part}`).toBeGreaterThan(whole.height * (part - 0.4));
    expect(await decodeTop(start, whole, whole.height), `all of ${part}`).toBeNull();
    // After the truncation there is only fill.
    const corner = { x: whole.width - 6, y: whole.height - 6, width: 6, height: 6 };
    await expect(workbench.decode(start, corner)).rejects.toThrow(/end/i);
  }
});

// An arithmetic coder omits zeros that its decoder fills in, so only an end marker proves that nothing is missing.
test.each([...singleScan, ...layered].filter((name) => !name.startsWith('arithmetic')))(
  '%s without its end marker loses nothing, and counts as a warning',
  async (name) => {
    const bytes = fixture(`codec/${name}.jpg`);
    const whole = await workbench.decode(bytes);
    const open = await workbench.decode(bytes.subarray(0, bytes.length - 2));
    expect(open.warnings).toBe(1);
    expect(Buffer.compare(open.pixels, whole.pixels)).toBe(0);
  },
);

test.each(layered)('%s, truncated within a scan, has no complete pixel', async (name) => {
  const bytes = fixture(`codec/${name}.jpg`);
  const whole = await workbench.decode(bytes);
  for (const part of [0.4, 0.7, 0.9]) {
    const start = bytes.subarray(0, Math.floor(bytes.length * part));
    expect(await decodeTop(start, whole, 8), `${part}`).toBeNull();
  }
});

test('an earlier warning does not hide a premature end', async () => {
  const bytes = fixture('odd-images/flipped-bits.jpg');
  expect((await workbench.decode(bytes)).height).toBe(240);
  await expect(workbench.decode(bytes.subarray(0, Math.floor(bytes.length * 0.7)))).rejects.toThrow(/end/i);
});

function rectOf({ width }: Picture, height: number) {
  return { x: 0, y: 0, width, height };
}

async function decodeTop(bytes: Uint8Array, whole: Picture, rows: number): Promise<Picture | null> {
  return workbench.decode(bytes, rectOf(whole, rows)).catch(() => null);
}
