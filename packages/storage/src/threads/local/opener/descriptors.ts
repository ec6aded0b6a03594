import { nativeCalls } from '@shardtool/base';

/** Constants of <sys/socket.h> on Linux. */
const AF_UNIX = 1;
const SOCK_SEQPACKET = 5;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_DONTWAIT = 0x40;
const MSG_CMSG_CLOEXEC = 0x40000000;
/**
 * struct cmsghdr followed by one file descriptor: size_t length, int level, int type, int file. `length` does not count
 * the padding.
 */
const CONTROL_BYTES = 24;
const CONTROL_LENGTH = 20;

type Native = (...parameters: readonly unknown[]) => number;

/** The functions of koffi that are used here. */
interface Koffi {
  struct(name: string, fields: Readonly<Record<string, string>>): unknown;
  load(library: null): { func(name: string, result: string, parameters: readonly string[]): Native };
}

/** Passes open files between processes, each with an id (unix(7), SCM_RIGHTS). */
export interface Descriptors {
  /**
   * Returns the two ends of a socket pair. The end of this process is not inherited by other programs that it starts.
   */
  pair(): [number, number];
  send(socket: number, id: number, file: number): void;
  /**
   * Returns the next id and file in the order of sending, or null if nothing has arrived. The file is null if this
   * process has too many open files.
   */
  receive(socket: number): { readonly id: number; readonly file: number | null } | null;
}

let known: Descriptors | undefined;

/** Throws if the system does not have these calls, or if koffi is not installed. */
export function descriptors(): Descriptors {
  known ??= makeDescriptors();
  return known;
}

function makeDescriptors(): Descriptors {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) throw new Error('this is not Linux');
  const koffi = nativeCalls<Koffi>();
  koffi.struct('shardtool_iovec', { base: 'void *', length: 'size_t' });
  koffi.struct('shardtool_msghdr', {
    name: 'void *',
    nameLength: 'uint32_t',
    parts: 'shardtool_iovec *',
    partCount: 'size_t',
    control: 'void *',
    controlLength: 'size_t',
    flags: 'int',
  });
  const library = koffi.load(null);
  const socketpair = library.func('socketpair', 'int', ['int', 'int', 'int', 'void *']);
  const sendmsg = library.func('sendmsg', 'long', ['int', 'shardtool_msghdr *', 'int']);
  const recvmsg = library.func('recvmsg', 'long', ['int', 'shardtool_msghdr *', 'int']);
  return {
    pair() {
      const ends = new Int32Array(2);
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) !== 0)
        throw new Error('there is no pair of sockets');
      return [ends[0]!, ends[1]!];
    },
    send(socket, id, file) {
      const control = Buffer.alloc(CONTROL_BYTES);
      control.writeBigUInt64LE(BigInt(CONTROL_LENGTH), 0);
      control.writeInt32LE(SOL_SOCKET, 8);
      control.writeInt32LE(SCM_RIGHTS, 12);
      control.writeInt32LE(file, 16);
      const data = Buffer.alloc(4);
      data.writeInt32LE(id);
      if (sendmsg(socket, message(data, control), 0) !== data.length) throw new Error('a file cannot be passed on');
    },
    receive(socket) {
      const control = Buffer.alloc(CONTROL_BYTES);
      const data = Buffer.alloc(4);
      if (recvmsg(socket, message(data, control), MSG_DONTWAIT | MSG_CMSG_CLOEXEC) !== data.length) return null;
      // If the kernel cannot open the file in this process, it writes none of these bytes.
      const hasFile = control.readInt32LE(8) === SOL_SOCKET && control.readInt32LE(12) === SCM_RIGHTS;
      return { id: data.readInt32LE(), file: hasFile ? control.readInt32LE(16) : null };
    },
  };
}

/** struct msghdr */
function message(data: Uint8Array, control: Uint8Array): unknown {
  return {
    name: null,
    nameLength: 0,
    parts: [{ base: data, length: data.length }],
    partCount: 1,
    control,
    controlLength: control.length,
    flags: 0,
  };
}
