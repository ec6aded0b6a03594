/**
 * The kernel that converts bytes to values, as PTX text (NVIDIA, "PTX ISA") for sm_50. The driver compiles it for its device. The
 * PTX version is 4.0, the first with sm_50, because drivers refuse versions that are newer than themselves. One template
 * generates an entry for each kind of value and layout.
 *
 * A thread converts one pixel: three bytes of [n, height, width, 3]. It computes `byte * scale + bias` in float32 with two
 * roundings, like the CPU kernel, and rounds the result to the dtype, ties to even. bfloat16 is rounded with integers, because
 * sm_50 has no instruction for it. That is correct for all values except NaN, which cannot occur: scale and bias are finite.
 */
import type { DeviceDtype, DeviceLayout } from '@shardtool/reader';

/** Threads of a block. */
export const BLOCK_THREADS = 256;

const CHANNELS = [0, 1, 2] as const;

/** Bytes of one value. */
export const VALUE_BYTES: Readonly<Record<DeviceDtype, number>> = { uint8: 1, float32: 4, float16: 2, bfloat16: 2 };

/** Converts `%bits` (uint8) or `%value` (float32) to the dtype and stores it at `[%to]`. */
const STORES: Readonly<Record<DeviceDtype, string>> = {
  uint8: 'st.global.u8 [%to], %bits;',
  float32: 'st.global.f32 [%to], %value;',
  float16: `cvt.rn.f16.f32 %half, %value;
  st.global.b16 [%to], %half;`,
  // Rounds to even: adds half of the last bit that is kept, minus one if that bit is 0. The carry rounds up.
  bfloat16: `mov.b32 %bits, %value;
  shr.u32 %odd, %bits, 16;
  and.b32 %odd, %odd, 1;
  add.u32 %bits, %bits, %odd;
  add.u32 %bits, %bits, 0x7fff;
  shr.u32 %bits, %bits, 16;
  st.global.u16 [%to], %bits;`,
};

/** Computes `%at`, the index of the value of channel 0, and `%step`, the distance between channels in bytes. */
const PLACES: Readonly<Record<DeviceLayout, (valueBytes: number) => string>> = {
  nhwc: (valueBytes) => `mul.wide.u32 %at, %pixel, 3;
  mov.u64 %step, ${valueBytes};`,
  // Channel 0 of pixel p, counted over all images, is value p + 2 * i * plane: each of the i images before has two more planes.
  nchw: (valueBytes) => `ld.param.u32 %plane, [plane];
  div.u32 %image, %pixel, %plane;
  mul.lo.u32 %image, %image, %plane;
  cvt.u64.u32 %at, %pixel;
  mad.wide.u32 %at, %image, 2, %at;
  mul.wide.u32 %step, %plane, ${valueBytes};`,
};

/** The name of the entry; null if copying is enough. */
export function entryName(dtype: DeviceDtype, layout: DeviceLayout): string | null {
  return dtype === 'uint8' && layout === 'nhwc' ? null : `shardtool_${dtype}_${layout}`;
}

/** The module with one entry. Parameters: {@link packParameters}. */
export function ptxModule(dtype: DeviceDtype, layout: DeviceLayout): string {
  return `.version 4.0
.target sm_50
.address_size 64
${entry(dtype, layout)}`;
}

function entry(dtype: DeviceDtype, layout: DeviceLayout): string {
  return `
.visible .entry ${entryName(dtype, layout)}(
  .param .u64 source,
  .param .u64 target,
  .param .u32 pixels,
  .param .u32 plane,
  .param .f32 scale0,
  .param .f32 scale1,
  .param .f32 scale2,
  .param .f32 bias0,
  .param .f32 bias1,
  .param .f32 bias2
)
{
  .reg .pred %outside;
  .reg .b16 %half;
  .reg .b32 %block, %threads, %thread, %pixel, %pixels, %plane, %image, %bits, %odd;
  .reg .b64 %source, %target, %from, %to, %at, %step;
  .reg .f32 %value, %scale, %bias;

  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %pixel, %block, %threads, %thread;
  ld.param.u32 %pixels, [pixels];
  setp.ge.u32 %outside, %pixel, %pixels;
  @%outside bra DONE;

  ld.param.u64 %source, [source];
  cvta.to.global.u64 %source, %source;
  mad.wide.u32 %from, %pixel, 3, %source;

  ${PLACES[layout](VALUE_BYTES[dtype])}
  ld.param.u64 %target, [target];
  cvta.to.global.u64 %target, %target;
  mad.lo.u64 %to, %at, ${VALUE_BYTES[dtype]}, %target;
${CHANNELS.map((channel) => channelText(dtype, channel)).join('\n  add.u64 %to, %to, %step;\n')}
DONE:
  ret;
}
`;
}

function channelText(dtype: DeviceDtype, channel: number): string {
  const load = `
  ld.global.u8 %bits, [%from+${channel}];`;
  if (dtype === 'uint8') return `${load}\n  ${STORES.uint8}`;
  return `${load}
  ld.param.f32 %scale, [scale${channel}];
  ld.param.f32 %bias, [bias${channel}];
  cvt.rn.f32.u32 %value, %bits;
  mul.rn.f32 %value, %value, %scale;
  add.rn.f32 %value, %value, %bias;
  ${STORES[dtype]}`;
}

/** One launch for a number of `images` with `plane` pixels each. Addresses are in device memory. */
export interface KernelWork {
  readonly source: bigint;
  readonly target: bigint;
  readonly images: number;
  readonly plane: number;
  readonly scale: Float32Array;
  readonly bias: Float32Array;
}

/** Offsets in bytes of the parameters in {@link packParameters}, in the order of the entry. */
export const PARAMETER_OFFSETS = [0, 8, 16, 20, 24, 28, 32, 36, 40, 44] as const;

/** Packs the parameters of an entry in sequence. */
export function packParameters({ source, target, images, plane, scale, bias }: KernelWork): DataView {
  const view = new DataView(new ArrayBuffer(48));
  view.setBigUint64(0, source, true);
  view.setBigUint64(8, target, true);
  view.setUint32(16, images * plane, true);
  view.setUint32(20, plane, true);
  for (const channel of CHANNELS) {
    view.setFloat32(24 + 4 * channel, scale[channel]!, true);
    view.setFloat32(36 + 4 * channel, bias[channel]!, true);
  }
  return view;
}

/** float32 factors and summands for (byte / 255 - mean) / std, equal to those of the CPU kernels. */
export function affine(
  mean: readonly [number, number, number],
  std: readonly [number, number, number],
): { scale: Float32Array; bias: Float32Array } {
  return {
    scale: Float32Array.from(std, (deviation) => 1 / (255 * deviation)),
    bias: Float32Array.from(mean, (value, channel) => -value / std[channel]!),
  };
}
