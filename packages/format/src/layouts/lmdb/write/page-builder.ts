import type { SummedBytes } from '../../../sample/sample-codec.js';
import type { WriteBuffer } from '../../bytes/write-buffer.js';
import { encodePageBounds, encodePageHeader, even, PAGE_BYTES, PAGE_HEADER_BYTES, POINTER_BYTES } from '../page.js';

/** One tree page, laid out in the write buffer: offsets of nodes from the front, nodes from the back. */
export class PageBuilder {
  readonly number: number;
  readonly page: Buffer;
  readonly #output: WriteBuffer;
  /** The values that were copied into the page. */
  readonly #summed: SummedBytes[] = [];
  #lower = PAGE_HEADER_BYTES;
  #upper = PAGE_BYTES;

  /** `output` is at the start of a page. */
  constructor(output: WriteBuffer, type: number) {
    this.#output = output;
    this.number = output.position / PAGE_BYTES;
    this.page = output.room(PAGE_BYTES);
    encodePageHeader(this.page, this.number, type);
  }

  fits(nodeBytes: number): boolean {
    return even(nodeBytes) + POINTER_BYTES <= this.#upper - this.#lower;
  }

  /** Allocates the next node in the page. Nodes are added in the order of their keys. */
  place(nodeBytes: number): number {
    this.#upper -= even(nodeBytes);
    this.page[this.#upper + even(nodeBytes) - 1] = 0;
    this.page.writeUInt16LE(this.#upper, this.#lower);
    this.#lower += POINTER_BYTES;
    return this.#upper;
  }

  /** Records a value of the last node, with the checksum that it should have. */
  take(value: SummedBytes): void {
    this.#summed.push(value);
  }

  finish(): void {
    encodePageBounds(this.page, this.#lower, this.#upper);
    this.page.fill(0, this.#lower, this.#upper);
    // Nodes are placed from the back.
    this.#output.append(PAGE_BYTES, this.#summed.reverse());
  }
}
