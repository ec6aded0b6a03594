"""The part of a pipeline that is translated so far: steps on pixels, then steps on values."""

from __future__ import annotations

from enum import Enum
from typing import Any, Dict, List

Step = Dict[str, Any]


#: Steps after which images are at least as large as their size, and steps that leave the size as it is.
_HAVE_SIZE = ("Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop")
_KEEP_SIZE = (
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "ColorJitter",
    "Grayscale",
    "RandomGrayscale",
    "GaussianBlur",
)


class Untranslatable(Exception):
    """A transform has no counterpart. The text is the reason, the end of a sentence about the transform."""


class Pipeline:
    """Collects steps in the order in which shardtool applies them.

    shardtool changes pixels as bytes and converts them to floats at the end. A pipeline that converts to floats first
    gives the same images within 1 level, so its later crops and flips are moved in front of the conversion.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.pixels: List[Step] = []
        self.values: List[Step] = []
        #: Pipelines start with a Pillow image, as ImageFolder returns it.
        self.is_tensor = False
        #: The dtype of the tensor by its name in torch.
        self.dtype = "uint8"
        #: Floats are from 0 to 1, not from 0 to 255.
        self.is_scaled = False
        self.is_normalized = False
        self.is_erased = False

    @property
    def is_float(self) -> bool:
        return self.dtype != "uint8"

    def steps(self) -> List[Step]:
        return [*self.pixels, *self.values]

    def add(self, step: Step, moves_pixels_only: bool) -> None:
        """Adds a step on pixels. ``moves_pixels_only``: it commutes with operations on single values."""
        if self.is_erased:
            raise Untranslatable("comes after a RandomErasing of normalized values")
        if not moves_pixels_only:
            if self.is_normalized:
                raise Untranslatable(
                    "comes after Normalize, but shardtool changes pixels before Normalize: move it before"
                )
            if self.is_float and not self.is_scaled:
                raise Untranslatable("comes after a conversion to floats from 0 to 255, but expects floats from 0 to 1")
        self.pixels.append(step)

    def covers(self, size: Any) -> bool:
        """Whether images are known to be at least as large as this size."""
        last = next((step for step in reversed(self.pixels) if step["name"] not in _KEEP_SIZE), None)
        if last is None or last["name"] not in _HAVE_SIZE or last.get("max_size") is not None:
            return False
        has, wanted = _list(last["size"]), _list(size)
        return all(is_ >= least for is_, least in zip(has * (2 // len(has)), wanted * (2 // len(wanted))))

    def convert(self, dtype: str, scale: bool) -> None:
        """Converts the values to a dtype of torch. ``scale``: from 0 to 255 to 0 to 1."""
        self.is_tensor = True
        if dtype == self.dtype:
            return
        if dtype not in ("float32", "float16"):
            raise Untranslatable(f"converts to {dtype}: batches are uint8, float32 or float16")
        if self.is_float and dtype == "float32":
            raise Untranslatable("converts float16 to float32: remove the conversion to float16 before")
        if not self.is_float:
            self.is_scaled = scale
        self.dtype = dtype
        self.values.append({"name": "toDtype", "dtype": dtype, "scale": self.is_scaled})

    def normalize(self, mean: List[float], std: List[float]) -> None:
        if not self.is_float:
            raise Untranslatable("comes before the conversion to floats (ToTensor, or ToDtype with scale=True)")
        if self.is_normalized:
            raise Untranslatable("is a second Normalize: combine the two")
        if self.is_erased:
            raise Untranslatable("comes after a RandomErasing of float values: move it before RandomErasing")
        if len(mean) == 1:
            mean, std = mean * self.channels, std * self.channels
        if len(mean) != self.channels or len(std) != self.channels:
            has = "1 channel" if self.channels == 1 else f"{self.channels} channels"
            raise Untranslatable(f"has {len(mean)} means, but images have {has}")
        self.is_normalized = True
        self.values.append({"name": "normalize", "mean": mean, "std": std})

    def erase(self, step: Step, value: Any) -> None:
        """Adds randomErasing with a value in the range that values have at this point, or "random"."""
        if self.is_float and not self.is_normalized and not self.is_erased and value != "random":
            # Bytes of the same color, so that Normalize may follow.
            scaled = [part * 255 if self.is_scaled else part for part in _list(value)]
            if all(0 <= part <= 255 and float(part).is_integer() for part in scaled):
                self.pixels.append({**step, "value": _single([int(part) for part in scaled])})
                return
        if not self.is_float:
            if value == "random":
                raise Untranslatable('has value="random" before the conversion to floats')
            if any(float(part) != int(part) for part in _list(value)):
                raise Untranslatable(
                    f"has the value {value!r} before the conversion to floats; bytes are whole numbers"
                )
            self.pixels.append({**step, "value": _single([int(part) for part in _list(value)])})
            return
        self.is_erased = True
        self.values.append({**step, "value": value})

    def erase_randomly(self, step: Step) -> None:
        """Adds randomErasing that draws normalized values."""
        if not self.is_float:
            raise Untranslatable("erases with random values before the conversion to floats")
        self.is_erased = True
        self.values.append(step)

    def fill(self, fill: Any) -> Any:
        """A fill value as bytes: of a number, or of a number for each channel."""
        scale = 255 if self.is_float and self.is_scaled else 1
        parts = [plain(part) * scale for part in _list(plain(fill))]
        if any(not 0 <= part <= 255 or not float(part).is_integer() for part in parts):
            raise Untranslatable(f"has fill={fill!r}, which is not a whole number from 0 to 255")
        if len(parts) not in (1, 3):
            raise Untranslatable(f"has fill={fill!r}: it takes one number or three")
        if self.is_normalized and any(parts):
            raise Untranslatable(f"has fill={fill!r} after Normalize")
        return _single([int(part) for part in parts])

    def resizing(self, given: Any) -> Any:
        """The interpolation of a resize, or a list of them, as shardtool names it."""
        given = plain(given)
        if isinstance(given, list):
            return [self.resizing(one) for one in given]
        # Pillow's NEAREST takes the pixels of "nearest-exact".
        return "nearest-exact" if given == "nearest" and not self.is_tensor else given


def plain(value: Any) -> Any:
    """A value of a transform as numbers, texts and lists."""
    if isinstance(value, Enum):
        return plain(value.value)
    if hasattr(value, "tolist"):
        return _shortest(value.tolist()) if "float32" in str(value.dtype) else value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if type(value).__module__ == "torch":
        return str(value).rsplit(".", 1)[-1]
    return value


def _shortest(values: Any) -> Any:
    """The shortest numbers that are these in float32: 0.485 for 0.48500001430511475."""
    return [_shortest(value) for value in values] if isinstance(values, list) else float(f"{values:.7g}")


def _list(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _single(parts: List[Any]) -> Any:
    return parts[0] if len(set(parts)) == 1 else parts
