/** RGB, 3 bytes per pixel. */
export class Canvas {
  readonly pixels: Uint8Array;

  constructor(
    readonly width: number,
    readonly height: number,
    background: number,
  ) {
    this.pixels = new Uint8Array(width * height * 3).fill(background);
  }

  /** Draws a picture of 3 bytes per pixel with its upper left corner at (left, top). */
  paste(picture: Uint8Array, pictureWidth: number, left: number, top: number): void {
    const row = pictureWidth * 3;
    for (let y = 0; y * row < picture.length; y++) {
      this.pixels.set(picture.subarray(y * row, (y + 1) * row), ((top + y) * this.width + left) * 3);
    }
  }

  /** Draws text: blends pixels towards `light` by the coverage in `ink`. */
  write(ink: Uint8Array, inkWidth: number, left: number, top: number, light: number): void {
    ink.forEach((value, i) => {
      if (value === 0) return;
      const at = ((top + Math.floor(i / inkWidth)) * this.width + left + (i % inkWidth)) * 3;
      for (let channel = 0; channel < 3; channel++) {
        const before = this.pixels[at + channel]!;
        this.pixels[at + channel] = before + Math.round(((light - before) * value) / 255);
      }
    });
  }
}
