import { DamagedShardError, EntryNameError, TruncatedShardError, UnsupportedEntryError } from '@shardtool/base';

// The errors of a damaged archive, one sentence each. `offset` is that of the header concerned.

/** `trouble` continues "the header at byte N". */
export function damaged(shard: string, offset: number, trouble: string): DamagedShardError {
  const message = `${shard}: the header at byte ${offset} ${trouble}; the shard is damaged: fetch or write it again.`;
  return new DamagedShardError({ shard, offset }, message);
}

export function notText(shard: string, offset: number): EntryNameError {
  const message = `${shard}: the name of the entry at byte ${offset} is not UTF-8; write the archive again with UTF-8 names.`;
  return new EntryNameError({ shard, offset }, message);
}

export function holdsNul(shard: string, offset: number): EntryNameError {
  const message = `${shard}: the name in the record at byte ${offset} contains a NUL, which no file name may; write the archive again without it.`;
  return new EntryNameError({ shard, offset }, message);
}

/** `reason` continues "a name that". */
export function unsafeName(shard: string, offset: number, path: string, reason: string): EntryNameError {
  const message =
    `${shard}: the entry at byte ${offset} has a name that ${reason} (${JSON.stringify(path)}); ` +
    `write the archive again with relative names.`;
  return new EntryNameError({ shard, path, offset }, message);
}

export function unsupported(shard: string, offset: number, path: string, kind: string): UnsupportedEntryError {
  const remedy = kind === 'a sparse file' ? 'without the option -S of tar, which makes sparse entries' : 'without it';
  const message = `${shard}: ${JSON.stringify(path)} at byte ${offset} is ${kind}, and shards hold plain files only; write the archive again ${remedy}.`;
  return new UnsupportedEntryError({ shard, path, offset }, message);
}

export function cutInPayload(
  shard: string,
  offset: number,
  path: string,
  bytes: number,
  left: number,
): TruncatedShardError {
  const message =
    `${shard}: ${JSON.stringify(path)} at byte ${offset} is ${bytes} bytes long, ` +
    `but the shard ends after ${left} of them. It is truncated: fetch or write it again.`;
  return new TruncatedShardError({ shard, path, offset }, message);
}

export function cutBeforeEnd(shard: string, size: number): TruncatedShardError {
  const message =
    `${shard}: it ends at byte ${size} without the zeros that end an archive, so samples may be missing. ` +
    `Fetch or write it again (or append 1,024 zero bytes if you know that it is complete).`;
  return new TruncatedShardError({ shard, offset: size }, message);
}

export function moreBehindEnd(shard: string, offset: number): DamagedShardError {
  const message =
    `${shard}: there is data at byte ${offset}, after the zeros that end the archive. ` +
    `It is damaged, or several archives were concatenated: fetch it again, or split it.`;
  return new DamagedShardError({ shard, offset }, message);
}
