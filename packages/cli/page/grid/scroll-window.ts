/**
 * Which rows of a long list show. Browsers cut elements off at some 17 to 33 million pixels, and a million samples in a narrow
 * window are more: the element that scrolls is then shorter than the list. Short ways scroll pixel by pixel, long ones (the
 * scroll bar) by their part of the whole, and when scrolling rests the bar is set to where the list is.
 */

/** Below what any browser takes. */
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

  /** Of the whole list. */
  get listHeight(): number {
    return this.rows * this.rowHeight;
  }

  /** Of the element that scrolls. */
  get height(): number {
    return Math.min(this.listHeight, MOST_PIXELS);
  }

  /** What to take off a row's place in the list to have its place in the element. */
  get base(): number {
    return this.top - this.#last;
  }

  /** The element was scrolled to so many pixels. */
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

  /** Where the element is to be scrolled to so that the bar says where the list is; the same rows show then. */
  rest(): number {
    if (this.height === this.listHeight) return this.#last;
    const part = this.top / Math.max(1, this.listHeight - this.viewport);
    // Both ends stay for the ends of the list.
    const inside = Math.max(
      1,
      Math.min(this.height - this.viewport - 2, Math.round(part * (this.height - this.viewport))),
    );
    this.#last = this.top <= 0 ? 0 : this.top >= this.listHeight - this.viewport ? this.height - this.viewport : inside;
    return this.#last;
  }

  /** Puts a place of the list at the top of the window; returns what to scroll the element to. */
  jump(top: number): number {
    this.top = Math.max(0, Math.min(top, this.listHeight - this.viewport));
    if (this.height === this.listHeight) this.#last = this.top;
    return this.rest();
  }

  /** As many rows as are ever there: what was made for one that is gone serves for one that comes. */
  get pool(): number {
    return Math.ceil((2 * this.viewport) / this.rowHeight) + 2;
  }

  /** Rows that show, and half a window of them on both sides. */
  shown(): { readonly first: number; readonly last: number } {
    const ahead = this.viewport / 2;
    return {
      first: Math.max(0, Math.floor((this.top - ahead) / this.rowHeight)),
      last: Math.min(this.rows, Math.ceil((this.top + this.viewport + ahead) / this.rowHeight)),
    };
  }
}
