// Sharpness (torchvision.transforms.v2.functional `adjust_sharpness_image`, Pillow's ImageEnhance.Sharpness): blends the image with a
// smoothed one, (the 8 neighbors + 5 * the pixel) / 13. Pixels at the edges do not change.
import { copy } from '../copy';

@inline function wide(at: usize): v128 {
  return v128.load8x8_u(at);
}

@inline function triple(at: usize): v128 {
  return i16x8.add(i16x8.add(wide(at - 3), wide(at)), wide(at + 3));
}

/** Rounds sums / 13 of 4 pixels to integers, and blends them with `values`. */
@inline function blended(sums: v128, values: v128, ratio: v128): v128 {
  // (n * 20165) >> 18 is n / 13 for all sums of 13 bytes.
  const smooth = f32x4.convert_i32x4_s(i32x4.shr_u(i32x4.mul(i32x4.add(sums, i32x4.splat(6)), i32x4.splat(20165)), 18));
  const own = f32x4.convert_i32x4_s(values);
  return i32x4.trunc_sat_f32x4_s(f32x4.add(own, f32x4.mul(f32x4.sub(smooth, own), ratio)));
}

/** Writes the picture with another sharpness. A factor of 1 changes nothing. Writes up to 8 bytes past the end. */
export function sharpen(source: usize, width: i32, height: i32, target: usize, factor: f32): void {
  const pitch = <usize>(width * 3);
  if (width < 3 || height < 3) {
    copy(target, source, pitch * <usize>height);
    return;
  }
  const ratio = f32x4.splat(1 - factor);
  const four = i16x8.splat(4);
  copy(target, source, pitch);
  for (let y = 1; y < height - 1; y++) {
    const row = source + <usize>y * pitch;
    const out = target + <usize>y * pitch;
    const end = row + pitch - 3;
    let to = out + 3;
    for (let at = row + 3; at < end; at += 8, to += 8) {
      const own = wide(at);
      const sums = i16x8.add(
        i16x8.add(triple(at - pitch), triple(at + pitch)), i16x8.add(triple(at), i16x8.mul(own, four))
      );
      const low = blended(i32x4.extend_low_i16x8_u(sums), i32x4.extend_low_i16x8_u(own), ratio);
      const high = blended(i32x4.extend_high_i16x8_u(sums), i32x4.extend_high_i16x8_u(own), ratio);
      const words = i16x8.narrow_i32x4_s(low, high);
      v128.store64_lane(to, i8x16.narrow_i16x8_u(words, words), 0);
    }
    // The loop may have written past the row.
    copyPixel(out, row);
    copyPixel(out + pitch - 3, row + pitch - 3);
  }
  const last = <usize>(height - 1) * pitch;
  copy(target + last, source + last, pitch);
}

@inline function copyPixel(target: usize, source: usize): void {
  store<u16>(target, load<u16>(source));
  store<u8>(target, load<u8>(source, 2), 2);
}
