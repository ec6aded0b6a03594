import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Types of local file systems on disks and in memory, as in /proc/self/mountinfo (proc_pid_mountinfo(5)). */
const LOCAL = new Set([
  ...['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'zfs', 'f2fs', 'bcachefs', 'jfs', 'reiserfs', 'vfat', 'exfat', 'ntfs3'],
  ...['overlay', 'tmpfs', 'ramfs', 'devtmpfs', 'squashfs', 'erofs', 'iso9660', 'udf', 'rootfs'],
]);
const MOST_LINKS = 40;

/**
 * True if a path is on a file system that may answer late or never: a network file system, or one of a process (FUSE).
 * It is detected without querying that file system. False if the system has no /proc.
 */
export function mayHang(path: string): boolean {
  const mounts = readMounts();
  if (mounts.size === 0) return false;
  return leadsToRemote(resolve(path), mounts, MOST_LINKS);
}

/** Follows the path from the root, one folder at a time, and stops at the first mount that is not local. */
function leadsToRemote(path: string, mounts: ReadonlyMap<string, string>, links: number): boolean {
  let here = '';
  for (const name of path.split('/').slice(1)) {
    here += `/${name}`;
    const kind = mounts.get(here);
    if (kind !== undefined) {
      if (!LOCAL.has(kind)) return true;
      continue;
    }
    const target = linkTarget(here);
    if (target === null) continue;
    if (links === 0) return false;
    const rest = path.slice(here.length);
    return leadsToRemote(resolve(dirname(here), target) + rest, mounts, links - 1);
  }
  return false;
}

/** Target of a link as stored in it. Null if the path is missing or not a link. */
export function linkTarget(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null;
  } catch {
    return null;
  }
}

/** Type of each mounted file system by its path. If several are mounted at one path, the last one hides the others. */
function readMounts(): Map<string, string> {
  let text: string;
  try {
    text = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return new Map();
  }
  const mounts = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [before, after] = line.split(' - ');
    const place = before?.split(' ')[4];
    const kind = after?.split(' ')[0];
    // Spaces and similar characters are written as three octal digits.
    if (place !== undefined && kind !== undefined) {
      mounts.set(
        place.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
        kind,
      );
    }
  }
  return mounts;
}
