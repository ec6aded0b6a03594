/**
 * Computes which rows of a long list are visible. Browsers limit elements to some 17 to 33 million pixels, and a
 * million samples in a narrow window need more. So the scrolling element may be shorter than the list. Short movements
 * scroll pixel by pixel. Long ones, with the scroll bar, scroll to the same fraction of the list. When scrolling ends,
 * the scroll bar is set to the position in the list.
 */

/** Maximum height of the scrolling element, below the limit of every browser. */
const MOST_PIXELS = 8_000_000;

export class ScrollWindow {
  /** Pixels from the top of the list to the top of the window. */
  top = 0;
  #last = 0;

  constructor(
    readonly rowHeight: number,
    readonly rows: number,
    readonly viewport: number,
  ) {}

  /** Height of the whole list, in pixels. */
  get listHeight(): number {
    return this.rows * this.rowHeight;
  }

  /** Height of the scrolling element, in pixels. */
  get height(): number {
    return Math.min(this.listHeight, MOST_PIXELS);
  }

  /** Difference between a row's position in the list and in the element, in pixels. */
  get base(): number {
    return this.top - this.#last;
  }

  /** Handles that the element was scrolled to `scrollTop` pixels. */
  scrolled(scrollTop: number): void {
    const [most, mostTop] = [this.height - this.viewport, this.listHeight - this.viewport];
    const by = scrollTop - this.#last;
    this.#last = scrollTop;
    if (this.height === this.listHeight) this.top = scrollTop;
    else if (scrollTop <= 0) this.top = 0;
    else if (scrollTop >= most - 1) this.top = mostTop;
    else if (Math.abs(by) < 2 * this.viewport) this.top = Math.max(0, Math.min(mostTop, this.top + by));
    else this.top = (scrollTop / most) * mostTop;
  }

  /**
   * Returns the scroll offset at which the scroll bar shows the position in the list. The visible rows stay the same.
   */
  rest(): number {
    if (this.height === this.listHeight) return this.#last;
    const part = this.top / Math.max(1, this.listHeight - this.viewport);
    // The two ends of the element are reserved for the two ends of the list.
    const inside = Math.max(
      1,
      Math.min(this.height - this.viewport - 2, Math.round(part * (this.height - this.viewport))),
    );
    this.#last = this.top <= 0 ? 0 : this.top >= this.listHeight - this.viewport ? this.height - this.viewport : inside;
    return this.#last;
  }

  /** Moves a position of the list to the top of the window. Returns the scroll offset for the element. */
  jump(top: number): number {
    this.top = Math.max(0, Math.min(top, this.listHeight - this.viewport));
    if (this.height === this.listHeight) this.#last = this.top;
    return this.rest();
  }

  /** Maximum number of rows in the page. The elements of a removed row are reused for a new one. */
  get pool(): number {
    return Math.ceil((2 * this.viewport) / this.rowHeight) + 2;
  }

  /** The visible rows, and half a window of rows on both sides. */
  shown(): { readonly first: number; readonly last: number } {
    const ahead = this.viewport / 2;
    return {
      first: Math.max(0, Math.floor((this.top - ahead) / this.rowHeight)),
      last: Math.min(this.rows, Math.ceil((this.top + this.viewport + ahead) / this.rowHeight)),
    };
  }
}
