import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** File systems of this machine's own disks and memory, as /proc/self/mountinfo names them (proc_pid_mountinfo(5)). */
const LOCAL = new Set([
  ...['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'zfs', 'f2fs', 'bcachefs', 'jfs', 'reiserfs', 'vfat', 'exfat', 'ntfs3'],
  ...['overlay', 'tmpfs', 'ramfs', 'devtmpfs', 'squashfs', 'erofs', 'iso9660', 'udf', 'rootfs'],
]);
const MOST_LINKS = 40;

/**
 * Whether a path lies on a file system that may answer late, or never: one behind a network, or one of a process (FUSE).
 * Found out without asking that file system anything. False where the system does not tell (no /proc).
 */
export function mayHang(path: string): boolean {
  const mounts = readMounts();
  if (mounts.size === 0) return false;
  return leadsToRemote(resolve(path), mounts, MOST_LINKS);
}

/** Follows the path from the root, one folder after the other, and stops where one is a mount that is not local. */
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

/** Where a link leads, as it says itself. Null for what is no link, or not there. */
export function linkTarget(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null;
  } catch {
    return null;
  }
}

/** The kind of each mounted file system by its place; of several at one place the last, which hides the others. */
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
    // Spaces and the like stand there as three octal digits.
    if (place !== undefined && kind !== undefined) {
      mounts.set(
        place.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
        kind,
      );
    }
  }
  return mounts;
}
