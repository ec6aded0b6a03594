import type { Source } from '@shardtool/storage';

export { openSource, type Source } from '@shardtool/storage';

/** The part of a file from `start` on, as if it were one. */
export function shiftedSource(source: Source, start: number): Source {
  const { location, size } = source;
  return {
    location,
    size: size - start,
    readAt: (offset, target) => source.readAt(start + offset, target),
    ...(source.readNow && { readNow: (offset: number, target: Uint8Array) => source.readNow!(start + offset, target) }),
    close: () => source.close(),
  };
}
