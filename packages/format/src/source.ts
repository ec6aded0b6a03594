import { joinLocation, openSource, type Source, splitLocation } from '@shardtool/storage';

export { openSource, type Source } from '@shardtool/storage';

/** Opens another file in the folder of a file. */
export function openSibling({ location, sibling }: Source, name: string): Promise<Source> {
  return sibling === undefined ? openSource(joinLocation(splitLocation(location).folder, name)) : sibling(name);
}

/** The part of a file from `start` on, as a separate source. */
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
