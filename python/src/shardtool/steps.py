"""The steps of a transform, as typed dictionaries. Made by scripts/step-docs.mjs from the reader's table of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Union

if TYPE_CHECKING:
    from typing import Literal, Sequence


class _Resize(TypedDict):
    name: Literal["resize", "Resize"]


class Resize(_Resize, total=False):
    """Resizes, antialiased, with bilinear weights.

    torchvision: v2.Resize.
    """

    #: Of the result. Without it, the longer side becomes max_size. The shorter side, or [height, width].
    size: int | Sequence[int]
    #: The most that the longer side may become, where size is not [height, width]. Pixels, 1 to 4096.
    max_size: int


class _ScaleJitter(TypedDict):
    name: Literal["scale_jitter", "scaleJitter", "ScaleJitter"]
    #: What a factor of 1 fits. In the order of torchvision, whose first number is compared with the width. A number
    #: or [width, height], 1 to 4096.
    target_size: int | Sequence[int]


class ScaleJitter(_ScaleJitter, total=False):
    """Resizes by a random factor, sides alike: 1 makes the image fit target_size.

    torchvision: v2.ScaleJitter.
    """

    #: What the factor is drawn from. [low, high], more than 0. Default [0.1, 2].
    scale_range: Sequence[float]


class _Letterbox(TypedDict):
    name: Literal["letterbox"]
    #: Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096.
    size: int | Sequence[int]


class Letterbox(_Letterbox, total=False):
    """Resizes until the image fits, sides alike, and adds a border on both sides of what is missing."""

    #: The value of the border. 0 to 255, or three of them. Default 114.
    fill: int | Sequence[int]
    #: What masks have there. Default 0. 0 to 255.
    mask_fill: int
    #: False: smaller images stay as they are. True or false. Default true.
    scale_up: bool


class _Cover(TypedDict):
    name: Literal["cover"]
    #: Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096.
    size: int | Sequence[int]


class Cover(_Cover, total=False):
    """Resizes until the image covers the size, sides alike, and takes that much of it."""

    #: Which part is taken. Center or random. Default "center".
    crop: Literal["center", "random"]


class _Pad(TypedDict):
    name: Literal["pad", "Pad"]
    #: How many. A number, [x, y] or [left, top, right, bottom].
    padding: int | Sequence[int]


class Pad(_Pad, total=False):
    """Adds pixels around the image.

    torchvision: v2.Pad.
    """

    #: Their value. 0 to 255, or three of them. Default 0.
    fill: int | Sequence[int]
    #: What masks have there. Default 0. 0 to 255.
    mask_fill: int


class _RandomZoomOut(TypedDict):
    name: Literal["random_zoom_out", "randomZoomOut", "RandomZoomOut"]


class RandomZoomOut(_RandomZoomOut, total=False):
    """Puts the image at a random place of a larger one.

    torchvision: v2.RandomZoomOut.
    """

    #: The value of what is around it. 0 to 255, or three of them. Default 0.
    fill: int | Sequence[int]
    #: What masks have there. Default 0. 0 to 255.
    mask_fill: int
    #: How many times as long the sides become. [low, high], from 1 on. Default [1, 4].
    side_range: Sequence[float]
    #: How likely it is. A probability. Default 0.5.
    p: float


class CenterCrop(TypedDict):
    """Takes the middle. What of it lies outside the image is black.

    torchvision: v2.CenterCrop.
    """

    name: Literal["center_crop", "centerCrop", "CenterCrop"]
    #: Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096.
    size: int | Sequence[int]


class _RandomCrop(TypedDict):
    name: Literal["random_crop", "randomCrop", "RandomCrop"]
    #: Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096.
    size: int | Sequence[int]


class RandomCrop(_RandomCrop, total=False):
    """Takes a part at a random place.

    torchvision: v2.RandomCrop.
    """

    #: Pixels around the image before. A number, [x, y] or [left, top, right, bottom]. Default 0.
    padding: int | Sequence[int]
    #: Pads images that are smaller than the crop; else they are bad samples. True or false. Default false.
    pad_if_needed: bool
    #: The value of the padding. 0 to 255. Default 0.
    fill: int
    #: What masks have there. Default 0. 0 to 255.
    mask_fill: int


class _RandomResizedCrop(TypedDict):
    name: Literal["random_resized_crop", "randomResizedCrop", "RandomResizedCrop"]
    #: Of the result: a number for a square, or [height, width]. A number or [height, width], 1 to 4096.
    size: int | Sequence[int]


class RandomResizedCrop(_RandomResizedCrop, total=False):
    """Takes a part of random area and shape, and resizes it.

    torchvision: v2.RandomResizedCrop.
    """

    #: Parts of the area. [low, high], more than 0. Default [0.08, 1].
    scale: Sequence[float]
    #: Width over height. [low, high], more than 0. Default [0.75, 1.333].
    ratio: Sequence[float]


class _RandomIoUCrop(TypedDict):
    name: Literal["random_iou_crop", "randomIoUCrop", "RandomIoUCrop"]


class RandomIoUCrop(_RandomIoUCrop, total=False):
    """Takes a part that holds the middle of a box and overlaps one as much as is drawn. Boxes whose middle is outside
    are emptied: sanitize_bounding_boxes drops them.

    torchvision: v2.RandomIoUCrop.
    """

    #: The least part of a side. More than 0, up to 1. Default 0.3.
    min_scale: float
    #: The largest part of a side. More than 0, up to 1. Default 1.
    max_scale: float
    #: The least width over height. More than 0. Default 0.5.
    min_aspect_ratio: float
    #: The largest width over height. More than 0. Default 2.
    max_aspect_ratio: float
    #: Overlaps (intersection over union) of which one is drawn; 1 leaves the image as it is. A list of numbers from
    #: 0 to 1. Default [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1].
    sampler_options: Sequence[float]
    #: How often a part is drawn before another overlap is. 1 to 100. Default 40.
    trials: int


class _RandomHorizontalFlip(TypedDict):
    name: Literal["random_horizontal_flip", "randomHorizontalFlip", "RandomHorizontalFlip"]


class RandomHorizontalFlip(_RandomHorizontalFlip, total=False):
    """Mirrors left and right.

    torchvision: v2.RandomHorizontalFlip.
    """

    #: How likely it is. A probability. Default 0.5.
    p: float


class _RandomVerticalFlip(TypedDict):
    name: Literal["random_vertical_flip", "randomVerticalFlip", "RandomVerticalFlip"]


class RandomVerticalFlip(_RandomVerticalFlip, total=False):
    """Mirrors top and bottom.

    torchvision: v2.RandomVerticalFlip.
    """

    #: How likely it is. A probability. Default 0.5.
    p: float


class _RandomRotation(TypedDict):
    name: Literal["random_rotation", "randomRotation", "RandomRotation"]
    #: The angle: up to this many degrees each way, or [low, high]. A number from 0 on, or [low, high].
    degrees: float | Sequence[float]


class RandomRotation(_RandomRotation, total=False):
    """Turns by a random angle, counter-clockwise.

    torchvision: v2.RandomRotation.
    """

    #: Of the image. Masks take the nearest pixel. Nearest or bilinear. Default "nearest".
    interpolation: Literal["nearest", "bilinear"]
    #: Makes the image as large as the turned one is. True or false. Default false.
    expand: bool
    #: What it turns about. Default: the middle. [x, y] in pixels.
    center: Sequence[float]
    #: What comes in at the corners. 0 to 255, or three of them. Default 0.
    fill: int | Sequence[int]
    #: What masks have there. Default 0. 0 to 255.
    mask_fill: int


class _GaussianBlur(TypedDict):
    name: Literal["gaussian_blur", "gaussianBlur", "GaussianBlur"]
    #: Pixels that count: a number, or [x, y]. An odd number up to 255, or [x, y].
    kernel_size: int | Sequence[int]


class GaussianBlur(_GaussianBlur, total=False):
    """Blurs, with a random sigma.

    torchvision: v2.GaussianBlur.
    """

    #: Standard deviation in pixels: a number, or what it is drawn from. A number, or [low, high]. Default [0.1, 2].
    sigma: float | Sequence[float]


class _ColorJitter(TypedDict):
    name: Literal["color_jitter", "colorJitter", "ColorJitter"]


class ColorJitter(_ColorJitter, total=False):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    torchvision: v2.ColorJitter.
    """

    #: A factor, by how far it may be from 1. A number from 0 on, or [low, high]. Default 0.
    brightness: float | Sequence[float]
    #: A factor, by how far it may be from 1. A number from 0 on, or [low, high]. Default 0.
    contrast: float | Sequence[float]
    #: A factor, by how far it may be from 1. A number from 0 on, or [low, high]. Default 0.
    saturation: float | Sequence[float]
    #: A part of the circle of hues. 0 to 0.5, or [low, high]. Default 0.
    hue: float | Sequence[float]


class _Grayscale(TypedDict):
    name: Literal["grayscale", "Grayscale"]


class Grayscale(_Grayscale, total=False):
    """Takes the colours out; three channels stay.

    torchvision: v2.Grayscale.
    """

    #: The channels of every batch. 3. Default 3.
    num_output_channels: Literal[3]


class _RandomGrayscale(TypedDict):
    name: Literal["random_grayscale", "randomGrayscale", "RandomGrayscale"]


class RandomGrayscale(_RandomGrayscale, total=False):
    """Takes the colours out of some images.

    torchvision: v2.RandomGrayscale.
    """

    #: How likely it is. A probability. Default 0.1.
    p: float


class _RandomErasing(TypedDict):
    name: Literal["random_erasing", "randomErasing", "RandomErasing"]


class RandomErasing(_RandomErasing, total=False):
    """Overwrites a rectangle of random place and shape.

    torchvision: v2.RandomErasing.
    """

    #: How likely it is. A probability. Default 0.5.
    p: float
    #: Parts of the area. [low, high], parts of the area. Default [0.02, 0.33].
    scale: Sequence[float]
    #: Height over width. [low, high], more than 0. Default [0.3, 3.3].
    ratio: Sequence[float]
    #: What it becomes: 0 to 255 before normalize and to_dtype, "random" only behind. A number, three of them, or
    #: "random". Default 0.
    value: float | Sequence[float] | Literal["random"]


class _SanitizeBoundingBoxes(TypedDict):
    name: Literal["sanitize_bounding_boxes", "sanitizeBoundingBoxes", "SanitizeBoundingBoxes"]


class SanitizeBoundingBoxes(_SanitizeBoundingBoxes, total=False):
    """Drops boxes that are too small, or partly outside the image, and what belongs to them.

    torchvision: v2.SanitizeBoundingBoxes.
    """

    #: The least width and height in pixels. A number from 0 on. Default 1.
    min_size: float
    #: The least area in pixels. A number from 0 on. Default 1.
    min_area: float


class _ToDtype(TypedDict):
    name: Literal["to_dtype", "toDtype", "ToDtype"]
    #: The dtype of the batch. Uint8, float32 or float16.
    dtype: Literal["uint8", "float32", "float16"]


class ToDtype(_ToDtype, total=False):
    """Says what values become. Floats come as [3, height, width], unless layout says otherwise.

    torchvision: v2.ToDtype.
    """

    #: True: floats from 0 to 1 instead of 0 to 255. True or false. Default false.
    scale: bool


class Normalize(TypedDict):
    """(value - mean) / std, channel by channel, of values from 0 to 1; makes float32 of bytes.

    torchvision: v2.Normalize.
    """

    name: Literal["normalize", "Normalize"]
    #: Of red, green and blue. Three numbers.
    mean: Sequence[float]
    #: Of red, green and blue. Three numbers, each more than 0.
    std: Sequence[float]


class Layout(TypedDict):
    """Says how values lie. Default: nhwc for bytes, nchw for floats."""

    name: Literal["layout"]
    #: [height, width, 3] or [3, height, width]. Nhwc or nchw.
    layout: Literal["nhwc", "nchw"]


#: A step of a transform.
Step = Union[
    Resize,
    ScaleJitter,
    Letterbox,
    Cover,
    Pad,
    RandomZoomOut,
    CenterCrop,
    RandomCrop,
    RandomResizedCrop,
    RandomIoUCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    RandomRotation,
    GaussianBlur,
    ColorJitter,
    Grayscale,
    RandomGrayscale,
    RandomErasing,
    SanitizeBoundingBoxes,
    ToDtype,
    Normalize,
    Layout,
]
