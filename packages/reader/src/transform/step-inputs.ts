// Made by scripts/step-docs.mjs from the table of steps; a test compares the two.

/** Resizes, antialiased, with bilinear weights. torchvision: v2.Resize. */
export interface ResizeInput {
  readonly name: 'resize';
  /** Of the result. Without it, the longer side becomes maxSize. The shorter side, or [height, width]. */
  readonly size?: number | readonly [number, number] | undefined;
  /** The most that the longer side may become, where size is not [height, width]. Pixels, 1 to 4096. */
  readonly maxSize?: number | undefined;
}

/** Resizes by a random factor, sides alike: 1 makes the image fit targetSize. torchvision: v2.ScaleJitter. */
export interface ScaleJitterInput {
  readonly name: 'scaleJitter';
  /** What a factor of 1 fits. In the order of torchvision, whose first number is compared with the width. A number or [width, height], 1 to 4096. */
  readonly targetSize: number | readonly [number, number];
  /** What the factor is drawn from. [low, high], more than 0. Default [0.1, 2]. */
  readonly scaleRange?: readonly [number, number] | undefined;
}

/** Resizes until the image fits, sides alike, and adds a border on both sides of what is missing. */
export interface LetterboxInput {
  readonly name: 'letterbox';
  /** Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096. */
  readonly size: number | readonly [number, number];
  /** The value of the border. 0 to 255, or three of them. Default 114. */
  readonly fill?: number | readonly [number, number, number] | undefined;
  /** What masks have there. Default 0. 0 to 255. */
  readonly maskFill?: number | undefined;
  /** False: smaller images stay as they are. True or false. Default true. */
  readonly scaleUp?: boolean | undefined;
}

/** Resizes until the image covers the size, sides alike, and takes that much of it. */
export interface CoverInput {
  readonly name: 'cover';
  /** Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096. */
  readonly size: number | readonly [number, number];
  /** Which part is taken. Center or random. Default "center". */
  readonly crop?: 'center' | 'random' | undefined;
}

/** Adds pixels around the image. torchvision: v2.Pad. */
export interface PadInput {
  readonly name: 'pad';
  /** How many. A number, [x, y] or [left, top, right, bottom]. */
  readonly padding: number | readonly [number, number] | readonly [number, number, number, number];
  /** Their value. 0 to 255, or three of them. Default 0. */
  readonly fill?: number | readonly [number, number, number] | undefined;
  /** What masks have there. Default 0. 0 to 255. */
  readonly maskFill?: number | undefined;
}

/** Puts the image at a random place of a larger one. torchvision: v2.RandomZoomOut. */
export interface RandomZoomOutInput {
  readonly name: 'randomZoomOut';
  /** The value of what is around it. 0 to 255, or three of them. Default 0. */
  readonly fill?: number | readonly [number, number, number] | undefined;
  /** What masks have there. Default 0. 0 to 255. */
  readonly maskFill?: number | undefined;
  /** How many times as long the sides become. [low, high], from 1 on. Default [1, 4]. */
  readonly sideRange?: readonly [number, number] | undefined;
  /** How likely it is. A probability. Default 0.5. */
  readonly p?: number | undefined;
}

/** Takes the middle. What of it lies outside the image is black. torchvision: v2.CenterCrop. */
export interface CenterCropInput {
  readonly name: 'centerCrop';
  /** Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096. */
  readonly size: number | readonly [number, number];
}

/** Takes a part at a random place. torchvision: v2.RandomCrop. */
export interface RandomCropInput {
  readonly name: 'randomCrop';
  /** Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096. */
  readonly size: number | readonly [number, number];
  /** Pixels around the image before. A number, [x, y] or [left, top, right, bottom]. Default 0. */
  readonly padding?: number | readonly [number, number] | readonly [number, number, number, number] | undefined;
  /** Pads images that are smaller than the crop; else they are bad samples. True or false. Default false. */
  readonly padIfNeeded?: boolean | undefined;
  /** The value of the padding. 0 to 255. Default 0. */
  readonly fill?: number | undefined;
  /** What masks have there. Default 0. 0 to 255. */
  readonly maskFill?: number | undefined;
}

/** Takes a part of random area and shape, and resizes it. torchvision: v2.RandomResizedCrop. */
export interface RandomResizedCropInput {
  readonly name: 'randomResizedCrop';
  /** Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096. */
  readonly size: number | readonly [number, number];
  /** Parts of the area. [low, high], more than 0. Default [0.08, 1]. */
  readonly scale?: readonly [number, number] | undefined;
  /** Width over height. [low, high], more than 0. Default [0.75, 1.333]. */
  readonly ratio?: readonly [number, number] | undefined;
}

/** Takes a part that holds the middle of a box and overlaps one as much as is drawn. Boxes whose middle is outside are emptied: sanitizeBoundingBoxes drops them. torchvision: v2.RandomIoUCrop. */
export interface RandomIoUCropInput {
  readonly name: 'randomIoUCrop';
  /** The least part of a side. More than 0, up to 1. Default 0.3. */
  readonly minScale?: number | undefined;
  /** The largest part of a side. More than 0, up to 1. Default 1. */
  readonly maxScale?: number | undefined;
  /** The least width over height. More than 0. Default 0.5. */
  readonly minAspectRatio?: number | undefined;
  /** The largest width over height. More than 0. Default 2. */
  readonly maxAspectRatio?: number | undefined;
  /** Overlaps (intersection over union) of which one is drawn; 1 leaves the image as it is. A list of numbers from 0 to 1. Default [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]. */
  readonly samplerOptions?: readonly number[] | undefined;
  /** How often a part is drawn before another overlap is. 1 to 100. Default 40. */
  readonly trials?: number | undefined;
}

/** Mirrors left and right. torchvision: v2.RandomHorizontalFlip. */
export interface RandomHorizontalFlipInput {
  readonly name: 'randomHorizontalFlip';
  /** How likely it is. A probability. Default 0.5. */
  readonly p?: number | undefined;
}

/** Mirrors top and bottom. torchvision: v2.RandomVerticalFlip. */
export interface RandomVerticalFlipInput {
  readonly name: 'randomVerticalFlip';
  /** How likely it is. A probability. Default 0.5. */
  readonly p?: number | undefined;
}

/** Turns by a random angle, counter-clockwise. torchvision: v2.RandomRotation. */
export interface RandomRotationInput {
  readonly name: 'randomRotation';
  /** The angle: up to this many degrees each way, or [low, high]. A number from 0 on, or [low, high]. */
  readonly degrees: number | readonly [number, number];
  /** Of the image. Masks take the nearest pixel. Nearest or bilinear. Default "nearest". */
  readonly interpolation?: 'nearest' | 'bilinear' | undefined;
  /** Makes the image as large as the turned one is. True or false. Default false. */
  readonly expand?: boolean | undefined;
  /** What it turns about. Default: the middle. [x, y] in pixels. */
  readonly center?: readonly [number, number] | undefined;
  /** What comes in at the corners. 0 to 255, or three of them. Default 0. */
  readonly fill?: number | readonly [number, number, number] | undefined;
  /** What masks have there. Default 0. 0 to 255. */
  readonly maskFill?: number | undefined;
}

/** Blurs, with a random sigma. torchvision: v2.GaussianBlur. */
export interface GaussianBlurInput {
  readonly name: 'gaussianBlur';
  /** Pixels that count: a number, or [x, y]. An odd number up to 255, or [x, y]. */
  readonly kernelSize: number | readonly [number, number];
  /** Standard deviation in pixels: a number, or what it is drawn from. A number, or [low, high]. Default [0.1, 2]. */
  readonly sigma?: number | readonly [number, number] | undefined;
}

/** Changes brightness, contrast, saturation and hue by random factors, in random order. torchvision: v2.ColorJitter. */
export interface ColorJitterInput {
  readonly name: 'colorJitter';
  /** A factor, by how far it may be from 1. A number from 0 on, or [low, high]. Default 0. */
  readonly brightness?: number | readonly [number, number] | undefined;
  /** A factor, by how far it may be from 1. A number from 0 on, or [low, high]. Default 0. */
  readonly contrast?: number | readonly [number, number] | undefined;
  /** A factor, by how far it may be from 1. A number from 0 on, or [low, high]. Default 0. */
  readonly saturation?: number | readonly [number, number] | undefined;
  /** A part of the circle of hues. 0 to 0.5, or [low, high]. Default 0. */
  readonly hue?: number | readonly [number, number] | undefined;
}

/** Takes the colours out; three channels stay. torchvision: v2.Grayscale. */
export interface GrayscaleInput {
  readonly name: 'grayscale';
  /** The channels of every batch. 3. Default 3. */
  readonly numOutputChannels?: 3 | undefined;
}

/** Takes the colours out of some images. torchvision: v2.RandomGrayscale. */
export interface RandomGrayscaleInput {
  readonly name: 'randomGrayscale';
  /** How likely it is. A probability. Default 0.1. */
  readonly p?: number | undefined;
}

/** Overwrites a rectangle of random place and shape. torchvision: v2.RandomErasing. */
export interface RandomErasingInput {
  readonly name: 'randomErasing';
  /** How likely it is. A probability. Default 0.5. */
  readonly p?: number | undefined;
  /** Parts of the area. [low, high], parts of the area. Default [0.02, 0.33]. */
  readonly scale?: readonly [number, number] | undefined;
  /** Height over width. [low, high], more than 0. Default [0.3, 3.3]. */
  readonly ratio?: readonly [number, number] | undefined;
  /** What it becomes: 0 to 255 before normalize and toDtype, "random" only behind. A number, three of them, or "random". Default 0. */
  readonly value?: number | readonly [number, number, number] | 'random' | undefined;
}

/** Drops boxes that are too small, or partly outside the image, and what belongs to them. torchvision: v2.SanitizeBoundingBoxes. */
export interface SanitizeBoundingBoxesInput {
  readonly name: 'sanitizeBoundingBoxes';
  /** The least width and height in pixels. A number from 0 on. Default 1. */
  readonly minSize?: number | undefined;
  /** The least area in pixels. A number from 0 on. Default 1. */
  readonly minArea?: number | undefined;
}

/** Says what values become. Floats come as [3, height, width], unless layout says otherwise. torchvision: v2.ToDtype. */
export interface ToDtypeInput {
  readonly name: 'toDtype';
  /** The dtype of the batch. Uint8, float32 or float16. */
  readonly dtype: 'uint8' | 'float32' | 'float16';
  /** True: floats from 0 to 1 instead of 0 to 255. True or false. Default false. */
  readonly scale?: boolean | undefined;
}

/** (value - mean) / std, channel by channel, of values from 0 to 1; makes float32 of bytes. torchvision: v2.Normalize. */
export interface NormalizeInput {
  readonly name: 'normalize';
  /** Of red, green and blue. Three numbers. */
  readonly mean: readonly [number, number, number];
  /** Of red, green and blue. Three numbers, each more than 0. */
  readonly std: readonly [number, number, number];
}

/** Says how values lie. Default: nhwc for bytes, nchw for floats. */
export interface LayoutInput {
  readonly name: 'layout';
  /** [height, width, 3] or [3, height, width]. Nhwc or nchw. */
  readonly layout: 'nhwc' | 'nchw';
}

/** A step as it is written: parameters with a default may be left out. */
export type StepInput =
  | ResizeInput
  | ScaleJitterInput
  | LetterboxInput
  | CoverInput
  | PadInput
  | RandomZoomOutInput
  | CenterCropInput
  | RandomCropInput
  | RandomResizedCropInput
  | RandomIoUCropInput
  | RandomHorizontalFlipInput
  | RandomVerticalFlipInput
  | RandomRotationInput
  | GaussianBlurInput
  | ColorJitterInput
  | GrayscaleInput
  | RandomGrayscaleInput
  | RandomErasingInput
  | SanitizeBoundingBoxesInput
  | ToDtypeInput
  | NormalizeInput
  | LayoutInput;
