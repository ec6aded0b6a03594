/**
 * Runs PTX text, thread by thread: the instructions that packages/cuda/src/kernel.ts uses, each as NVIDIA's "PTX ISA" defines
 * it, and no other. Registers are 64-bit words, which hold floats as the bits of a float32.
 */
const MASK_32 = 0xffff_ffffn;
const MASK_64 = 0xffff_ffff_ffff_ffffn;

const bitsOf = new DataView(new ArrayBuffer(8));

function floatOf(bits: bigint): number {
  bitsOf.setUint32(0, Number(bits));
  return bitsOf.getFloat32(0);
}

function bitsOfFloat(value: number): bigint {
  bitsOf.setFloat32(0, value);
  return BigInt(bitsOf.getUint32(0));
}

/** The nearest binary16, ties to even, found by comparing both neighbours. */
function halfOf(value: number): bigint {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (magnitude >= 65_520) return BigInt(sign | 0x7c00);
  const exponent = Math.max(-14, Math.floor(Math.log2(magnitude || 1e-30)));
  const unit = 2 ** (exponent - 10);
  const below = Math.floor(magnitude / unit);
  const rest = magnitude / unit - below;
  const steps = rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
  return BigInt(sign | (steps + (exponent + 14) * 1024));
}

const SIZES: Readonly<Record<string, number>> = { u8: 1, u16: 2, b16: 2, u32: 4, b32: 4, f32: 4, u64: 8, b64: 8 };

interface Instruction {
  readonly guard: string | null;
  readonly operation: string;
  readonly operands: readonly string[];
}

export interface Module {
  readonly entry: string;
  readonly target: string;
  /** Offset of each parameter in the parameters of the launch. */
  readonly parameters: ReadonlyMap<string, number>;
  readonly instructions: readonly Instruction[];
  readonly labels: ReadonlyMap<string, number>;
  /** Declared registers by name, with their types. */
  readonly registers: ReadonlyMap<string, string>;
}

/** Parses a module with one entry. */
export function parseModule(text: string): Module {
  const [, target] = /^\.version \d+\.\d+\n\.target (\w+)\n\.address_size 64\n/.exec(text) ?? [];
  const [, entry, list, body] = /\.visible \.entry (\w+)\(([^)]*)\)\s*\{([\s\S]*)\}\s*$/.exec(text) ?? [];
  if (target === undefined || body === undefined) throw new Error('This is no module with one entry.');
  const parameters = new Map<string, number>();
  let offset = 0;
  for (const declaration of list!.split(',')) {
    const [, type, name] = /^\s*\.param \.(\w+) (\w+)\s*$/.exec(declaration)!;
    const size = SIZES[type!]!;
    offset = Math.ceil(offset / size) * size;
    parameters.set(name!, offset);
    offset += size;
  }
  const registers = new Map<string, string>();
  const instructions: Instruction[] = [];
  const labels = new Map<string, number>();
  for (const statement of body.split(';')) {
    const rest = statement.trim().replace(/^(\w+):\s*/, (_, label: string) => {
      labels.set(label, instructions.length);
      return '';
    });
    if (rest === '') continue;
    const declared = /^\.reg \.(\w+) (.*)$/.exec(rest);
    if (declared !== null) {
      for (const name of declared[2]!.split(',')) registers.set(name.trim(), declared[1]!);
      continue;
    }
    const [, guard, operation, operands] = /^(?:@(%\w+) )?([\w.]+)\s*(.*)$/.exec(rest)!;
    const names = operands === '' ? [] : operands!.split(',').map((operand) => operand.trim());
    instructions.push({ guard: guard ?? null, operation: operation!, operands: names });
  }
  return { entry: entry!, target, parameters, instructions, labels, registers };
}

export interface Thread {
  readonly block: number;
  readonly threads: number;
  readonly thread: number;
}

/** Memory of the device: `bytes` from `address` on. Any other access is an error. */
export interface DeviceMemory {
  readonly address: bigint;
  readonly bytes: DataView;
}

/** Runs one thread to its end. */
export function runThread(
  module: Module,
  parameters: DataView,
  memories: readonly DeviceMemory[],
  thread: Thread,
): void {
  const values = new Map<string, bigint>();
  const special = new Map([
    ['%ctaid.x', BigInt(thread.block)],
    ['%ntid.x', BigInt(thread.threads)],
    ['%tid.x', BigInt(thread.thread)],
  ]);
  const read = (operand: string): bigint => {
    const value = special.get(operand) ?? values.get(operand);
    if (value !== undefined) return value;
    if (/^(0x[\da-f]+|\d+)$/.test(operand)) return BigInt(operand);
    throw new Error(`${operand} is read before it is written.`);
  };
  const write = (register: string, value: bigint): void => {
    if (!module.registers.has(register)) throw new Error(`${register} is not declared.`);
    values.set(register, value);
  };
  const place = (operand: string, size: number): [DataView, number] => {
    const [, base, more] = /^\[(%\w+)(?:\+(\d+))?\]$/.exec(operand)!;
    const address = read(base!) + BigInt(more ?? 0);
    if (address % BigInt(size) !== 0n) throw new Error(`Address ${address} is no multiple of ${size}.`);
    for (const { address: from, bytes } of memories) {
      if (address >= from && address + BigInt(size) <= from + BigInt(bytes.byteLength)) {
        return [bytes, Number(address - from)];
      }
    }
    throw new Error(`Address ${address} is outside of the memory.`);
  };
  for (let at = 0; at < module.instructions.length; at++) {
    const { guard, operation, operands } = module.instructions[at]!;
    if (guard !== null && read(guard) === 0n) continue;
    const [to, ...from] = operands as [string, ...string[]];
    const [a, b, c] = /^(ld|st|bra)/.test(operation) ? [] : from.map(read);
    switch (operation) {
      case 'ret':
        return;
      case 'bra':
        at = module.labels.get(to)! - 1;
        break;
      case 'mov.u32':
      case 'mov.b32':
      case 'mov.u64':
      case 'cvt.u64.u32':
      case 'cvta.to.global.u64':
        write(to, a!);
        break;
      case 'ld.param.u32':
      case 'ld.param.f32':
        write(to, BigInt(parameters.getUint32(offsetOf(module, from[0]!), true)));
        break;
      case 'ld.param.u64':
        write(to, parameters.getBigUint64(offsetOf(module, from[0]!), true));
        break;
      case 'setp.ge.u32':
        write(to, a! >= b! ? 1n : 0n);
        break;
      case 'and.b32':
        write(to, a! & b!);
        break;
      case 'shr.u32':
        write(to, a! >> b!);
        break;
      case 'add.u32':
        write(to, (a! + b!) & MASK_32);
        break;
      case 'add.u64':
        write(to, (a! + b!) & MASK_64);
        break;
      case 'div.u32':
        write(to, a! / b!);
        break;
      case 'mul.lo.u32':
        write(to, (a! * b!) & MASK_32);
        break;
      case 'mul.wide.u32':
        write(to, a! * b!);
        break;
      case 'mad.lo.u32':
        write(to, (a! * b! + c!) & MASK_32);
        break;
      case 'mad.lo.u64':
      case 'mad.wide.u32':
        write(to, (a! * b! + c!) & MASK_64);
        break;
      case 'cvt.rn.f32.u32':
        write(to, bitsOfFloat(Math.fround(Number(a!))));
        break;
      case 'mul.rn.f32':
        write(to, bitsOfFloat(Math.fround(floatOf(a!) * floatOf(b!))));
        break;
      case 'add.rn.f32':
        write(to, bitsOfFloat(Math.fround(floatOf(a!) + floatOf(b!))));
        break;
      case 'cvt.rn.f16.f32':
        write(to, halfOf(floatOf(a!)));
        break;
      case 'ld.global.u8': {
        const [view, offset] = place(from[0]!, 1);
        write(to, BigInt(view.getUint8(offset)));
        break;
      }
      case 'st.global.u8': {
        const [view, offset] = place(to, 1);
        view.setUint8(offset, Number(read(from[0]!) & 0xffn));
        break;
      }
      case 'st.global.u16':
      case 'st.global.b16': {
        const [view, offset] = place(to, 2);
        view.setUint16(offset, Number(read(from[0]!) & 0xffffn), true);
        break;
      }
      case 'st.global.f32': {
        const [view, offset] = place(to, 4);
        view.setUint32(offset, Number(read(from[0]!)), true);
        break;
      }
      default:
        throw new Error(`The interpreter does not know ${operation}.`);
    }
  }
  throw new Error('The thread did not return.');
}

function offsetOf(module: Module, operand: string): number {
  return module.parameters.get(operand.slice(1, -1))!;
}
