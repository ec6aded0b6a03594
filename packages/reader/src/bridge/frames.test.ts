import { parseJson } from '@shardtool/format';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeFrame, FrameDecoder } from './frames.js';

test('frames are received whole, however the pipe splits them', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.jsonValue(), fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 3 })), {
        maxLength: 5,
      }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
      (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(([header, parts]) => encodeFrame(header, parts)));
        const decoder = new FrameDecoder();
        const received: unknown[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const end = at + cuts[i % cuts.length]!;
          received.push(...decoder.push(bytes.subarray(at, end)));
          at = end;
        }
        expect(received).toEqual(
          frames.map(([header, parts]) => ({
            // JSON.stringify writes large numbers as integers.
            header: parseJson(JSON.stringify(header)),
            rest: Buffer.concat(parts),
          })),
        );
      },
    ),
  );
});

test('integers beyond 2^53 keep their digits in both directions', () => {
  const frame = encodeFrame({ id: 1234567890123456789n, n: 7 });
  expect(frame.toString('utf8', 8)).toBe('{"id":1234567890123456789,"n":7}');
  expect([...new FrameDecoder().push(frame)].map(({ header }) => header)).toEqual([{ id: 1234567890123456789n, n: 7 }]);
});

test('data that is not a frame is rejected', () => {
  expect(() => new FrameDecoder().push(Buffer.from('Traceback (most recent call last):'))).toThrow('is not possible');
  const headerTooLong = Buffer.alloc(8);
  headerTooLong.writeUInt32LE(6, 0);
  headerTooLong.writeUInt32LE(3, 4);
  expect(() => new FrameDecoder().push(headerTooLong)).toThrow('is not possible');
});
