/** Reads tables of FlatBuffers (flatbuffers.dev/internals), as Arrow stores its metadata. All offsets are checked by Buffer. */
export class FlatTable {
  readonly #bytes: Buffer;
  readonly #at: number;
  readonly #vtable: number;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#vtable = at - bytes.readInt32LE(at);
  }

  /** The table that a buffer begins with. Throws RangeError, like all methods, if the bytes are damaged. */
  static root(bytes: Buffer): FlatTable {
    return new FlatTable(bytes, bytes.readUInt32LE(0));
  }

  /** Position of a field; 0 if the table does not have it. */
  #field(index: number): number {
    const entry = 4 + 2 * index;
    if (entry >= this.#bytes.readUInt16LE(this.#vtable)) return 0;
    const offset = this.#bytes.readUInt16LE(this.#vtable + entry);
    return offset === 0 ? 0 : this.#at + offset;
  }

  byte(index: number): number {
    const at = this.#field(index);
    return at === 0 ? 0 : this.#bytes.readUInt8(at);
  }

  int16(index: number): number {
    const at = this.#field(index);
    return at === 0 ? 0 : this.#bytes.readInt16LE(at);
  }

  int32(index: number): number {
    const at = this.#field(index);
    return at === 0 ? 0 : this.#bytes.readInt32LE(at);
  }

  int64(index: number): number {
    const at = this.#field(index);
    return at === 0 ? 0 : Number(this.#bytes.readBigInt64LE(at));
  }

  table(index: number): FlatTable | null {
    const at = this.#field(index);
    return at === 0 ? null : new FlatTable(this.#bytes, at + this.#bytes.readUInt32LE(at));
  }

  text(index: number): string {
    const { at, length } = this.#vector(index);
    return this.#bytes.toString('utf8', at, at + length);
  }

  tables(index: number): FlatTable[] {
    const { at, length } = this.#vector(index, 4);
    return Array.from({ length }, (_, i) => {
      const entry = at + 4 * i;
      return new FlatTable(this.#bytes, entry + this.#bytes.readUInt32LE(entry));
    });
  }

  /** The structs of a vector, `size` bytes each. */
  structs(index: number, size: number): Buffer[] {
    const { at, length } = this.#vector(index, size);
    return Array.from({ length }, (_, i) => this.#bytes.subarray(at + i * size, at + (i + 1) * size));
  }

  #vector(index: number, size = 1): { readonly at: number; readonly length: number } {
    const field = this.#field(index);
    if (field === 0) return { at: 0, length: 0 };
    const start = field + this.#bytes.readUInt32LE(field);
    const length = this.#bytes.readUInt32LE(start);
    if (start + 4 + length * size > this.#bytes.length) throw new RangeError('a vector is longer than its buffer');
    return { at: start + 4, length };
  }
}
