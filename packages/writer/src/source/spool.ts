import { closeSync, rmdirSync, writeSync } from 'node:fs';
import { makeFolder, openWithoutName, readFullySync } from '@shardtool/base';
import { asDiskFull } from '../disk-full.js';

/** Storage of a {@link Spool}. */
export interface SpoolPlace {
  /** Limit of bytes in memory. A longer spool is completely on disk. */
  readonly memoryBytes: number;
  /**
   * Folder of the file, created if needed. The file is unlinked immediately, so a killed process leaves nothing on the
   * disk.
   */
  readonly folder: string;
}

/** A spool in the form that is sent to other threads of the process. */
export type SharedSpool = { readonly memory: SharedArrayBuffer } | { readonly fd: number };

const FIRST_BYTES = 1 << 16;

/** Bytes that are appended once and then read by all threads: in memory up to a limit, beyond it in a file. */
export class Spool {
  readonly #place: SpoolPlace;
  #length = 0;
  #memory: Buffer;
  #fd: number | null = null;

  constructor(place: SpoolPlace) {
    this.#place = place;
    const maxByteLength = Math.max(FIRST_BYTES, place.memoryBytes);
    this.#memory = viewOf(new SharedArrayBuffer(FIRST_BYTES, { maxByteLength }));
  }

  get length(): number {
    return this.#length;
  }

  /** Throws {@link DiskFullError} if the disk is full. */
  append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    try {
      if (this.#fd === null && length > this.#place.memoryBytes) this.#moveToDisk();
      if (this.#fd !== null) writeWhole(this.#fd, bytes, this.#length);
    } catch (error) {
      throw asDiskFull(error, this.#place.folder);
    }
    if (this.#fd === null) {
      this.#makeRoom(length);
      this.#memory.set(bytes, this.#length);
    }
    this.#length = length;
  }

  share(): SharedSpool {
    return this.#fd === null ? { memory: this.#memory.buffer as SharedArrayBuffer } : { fd: this.#fd };
  }

  /** Frees the bytes, in all threads. */
  close(): void {
    this.#memory = Buffer.alloc(0);
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #makeRoom(length: number): void {
    const memory = this.#memory.buffer as SharedArrayBuffer;
    if (length <= memory.byteLength) return;
    memory.grow(Math.min(memory.maxByteLength, Math.max(length, 2 * memory.byteLength)));
    this.#memory = viewOf(memory);
  }

  #moveToDisk(): void {
    const { folder } = this.#place;
    const isMade = makeFolder(folder);
    this.#fd = openWithoutName(folder);
    if (isMade) rmdirSync(folder);
    writeWhole(this.#fd, this.#memory.subarray(0, this.#length), 0);
    this.#memory = Buffer.alloc(0);
  }
}

/** The bytes of a spool to which nothing more is appended. */
export class SpooledBytes {
  /** All bytes; null if they are on disk. */
  readonly memory: Buffer | null;
  readonly #fd: number;

  constructor(shared: SharedSpool) {
    this.memory = 'memory' in shared ? viewOf(shared.memory) : null;
    this.#fd = 'fd' in shared ? shared.fd : -1;
  }

  /** Reads bytes from the disk; fewer at the end of the spool. */
  read(target: Buffer, from: number): number {
    return readFullySync(this.#fd, target, from);
  }

  /** Returns the bytes from `from` up to `to`. */
  span(from: number, to: number): Buffer {
    if (this.memory !== null) return this.memory.subarray(from, to);
    const bytes = Buffer.allocUnsafe(to - from);
    return bytes.subarray(0, this.read(bytes, from));
  }

  /** Passes the bytes from `from` up to `to` to `work`, which may change them. */
  change(from: number, to: number, work: (bytes: Buffer) => void): void {
    const bytes = this.span(from, to);
    work(bytes);
    if (this.memory === null) writeWhole(this.#fd, bytes, from);
  }
}

function viewOf(memory: SharedArrayBuffer): Buffer {
  // With an explicit length the view has a fixed length. Such views are faster, and system calls accept no others.
  return Buffer.from(memory, 0, memory.byteLength);
}

function writeWhole(fd: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, at + done);
}
