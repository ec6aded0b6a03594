// Converts RGB bytes to float32 [height, width, 3]: byte * scale + bias, per channel.

/** Bytes of 4 pixels, which become 3 vectors of 4 floats. */
const QUAD: usize = 12;

@inline function floatsOf(words: v128, scale: v128, bias: v128): v128 {
  return f32x4.add(f32x4.mul(f32x4.convert_i32x4_u(words), scale), bias);
}

/** Converts pixels. Reads 16 bytes at a time, so up to 4 past the end. Writes nothing but the pixels. */
export function makeFloats(
  source: usize, pixels: usize, target: usize, redScale: f32, greenScale: f32, blueScale: f32,
  redBias: f32, greenBias: f32, blueBias: f32
): void {
  const scale0 = f32x4(redScale, greenScale, blueScale, redScale);
  const scale1 = f32x4(greenScale, blueScale, redScale, greenScale);
  const scale2 = f32x4(blueScale, redScale, greenScale, blueScale);
  const bias0 = f32x4(redBias, greenBias, blueBias, redBias);
  const bias1 = f32x4(greenBias, blueBias, redBias, greenBias);
  const bias2 = f32x4(blueBias, redBias, greenBias, blueBias);
  const end = source + pixels * 3;
  for (; end - source >= QUAD; source += QUAD, target += 48) {
    const bytes = v128.load(source);
    const low = i16x8.extend_low_i8x16_u(bytes);
    const high = i16x8.extend_high_i8x16_u(bytes);
    v128.store(target, floatsOf(i32x4.extend_low_i16x8_u(low), scale0, bias0));
    v128.store(target, floatsOf(i32x4.extend_high_i16x8_u(low), scale1, bias1), 16);
    v128.store(target, floatsOf(i32x4.extend_low_i16x8_u(high), scale2, bias2), 32);
  }
  for (; source < end; source += 3, target += 12) {
    store<f32>(target, <f32>load<u8>(source) * redScale + redBias);
    store<f32>(target, <f32>load<u8>(source, 1) * greenScale + greenBias, 4);
    store<f32>(target, <f32>load<u8>(source, 2) * blueScale + blueBias, 8);
  }
}
