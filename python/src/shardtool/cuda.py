"""Copies batches to a GPU ahead of the loop, like data_prefetcher of NVIDIA apex.

The reader's slots are page-locked. Copies and conversion run on a separate stream. A slot is returned to the reader
when the event after its copies has happened. The consumer's stream waits for the event after the conversion. The
tensors are recorded on that stream, so torch's allocator reuses their memory only after the consumer's work.
"""

from __future__ import annotations

import contextlib
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .batch import Batch
from .batches_ahead import BatchesAhead
from .bridge.slot_file import SlotMemory
from .errors import OptionError, warn

if TYPE_CHECKING:
    from .bridge.reader_process import ReaderProcess
    from .loader import Loader

DTYPES = ("uint8", "float16", "bfloat16", "float32")


class Cuda:
    """The few functions of torch.cuda that are needed, for one device. The tests have a simulated one in its place."""

    def __init__(self, device: Optional[str]) -> None:
        import torch

        if not torch.cuda.is_available():
            asked = "pin_memory=True" if device is None else f"device={device!r}"
            raise OptionError(
                f"{asked} needs CUDA, but torch {torch.__version__} finds no CUDA device: install "
                f"NVIDIA's driver and a torch built for CUDA, or remove {asked}."
            )
        self._torch: Any = torch
        self._device = torch.device(device or "cuda")
        devices = torch.cuda.device_count()
        if self._device.index is not None and self._device.index >= devices:
            raise OptionError(f"There is no device {device}: torch finds {devices} CUDA device(s).")
        self._stream: Any = None if device is None else self._torch.cuda.Stream(self._device)

    def register(self, address: int, length: int) -> Optional[str]:
        """Page-locks memory. Returns None, or the reason why that failed."""
        cudart = self._torch.cuda.cudart()
        result = cudart.cudaHostRegister(address, length, 0)
        if int(result) == 0:
            return None
        # CUDA reports the error again at the next call: make that call here, so that no other code sees it.
        with contextlib.suppress(RuntimeError):
            self._torch.zeros(1, device=self._device)
        return f"cudaHostRegister: {cudart.cudaGetErrorString(result)}"

    def unregister(self, address: int) -> None:
        self._torch.cuda.cudart().cudaHostUnregister(address)

    def pinned(self, tensor: Any) -> Any:
        """Returns a copy in page-locked memory, which torch keeps until asynchronous copies from it are done."""
        memory = self._torch.empty_like(tensor, pin_memory=True)
        # numpy copies in this thread. torch would copy in a thread per core, and the decode workers need the cores.
        np.copyto(memory.numpy(), tensor.numpy())
        return memory

    def copy(self, tensor: Any) -> Any:
        """The tensor on the device. The copy is given to the stream."""
        with self._torch.cuda.stream(self._stream):
            return tensor.to(self._device, non_blocking=True)

    def convert(self, how: Callable[[Any], Any], tensor: Any) -> Any:
        """Applies ``how`` to a tensor, on the stream."""
        with self._torch.cuda.stream(self._stream):
            return how(tensor)

    def record(self) -> Any:
        """Records an event after all work that the stream has so far."""
        assert self._stream is not None
        return self._stream.record_event()

    def hand_over(self, ready: Any, tensors: Sequence[Any]) -> None:
        """Makes the current stream wait for the event, and records the tensors on it."""
        current = self._torch.cuda.current_stream(self._device)
        current.wait_event(ready)
        for tensor in tensors:
            tensor.record_stream(current)

    def synchronize(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()


class PinnedSlots:
    """The memory of the reader's slots, page-locked.

    CUDA identifies page-locked memory by its address. The memory is therefore unregistered before it is unmapped, also
    if the loader is collected without having been closed: otherwise CUDA would take the next mapping at this address
    for the old one, and copy other bytes.
    """

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._memory: Optional[SlotMemory] = None
        #: Unregisters the memory, once; None if it is not registered. Its arguments keep the memory mapped.
        self._unregister: Optional[weakref.finalize[..., PinnedSlots]] = None

    def use(self, memory: SlotMemory) -> bool:
        """Page-locks other memory instead. Returns False after a warning with the reason if that is not possible."""
        if memory is self._memory:
            return self._unregister is not None
        self.release()
        why = self._cuda.register(memory.address, len(memory))
        self._memory = memory
        if why is not None:
            warn(f"The batch slots cannot be page-locked, so each batch is copied once more ({why}).")
            return False
        self._unregister = weakref.finalize(self, _unregister, self._cuda, memory, os.getpid())
        # The end of the process ends its registrations.
        self._unregister.atexit = False
        return True

    def release(self) -> None:
        """Waits until no copy from the memory is in progress."""
        self._memory = None
        unregister, self._unregister = self._unregister, None
        if unregister is not None:
            unregister()


def _unregister(cuda: Cuda, memory: SlotMemory, owner: int) -> None:
    # A forked process has a copy of the loader, but CUDA's registrations are those of its parent.
    if os.getpid() == owner:
        cuda.synchronize()
        cuda.unregister(memory.address)


class Values:
    """How uint8 images are converted on the device: (byte / 255 - mean) / std per channel, rounded to a dtype."""

    def __init__(self, dtype: Optional[str], mean: Optional[Sequence[float]], std: Optional[Sequence[float]]) -> None:
        self.is_normalized = mean is not None or std is not None
        self.dtype = dtype or ("float32" if self.is_normalized else None)
        if self.dtype is not None and self.dtype not in DTYPES:
            raise OptionError(f"dtype must be {', '.join(DTYPES[:-1])} or {DTYPES[-1]}, not {dtype!r}.")
        if self.is_normalized and self.dtype == "uint8":
            raise OptionError("mean and std produce floats: remove dtype='uint8', or mean and std.")
        channels = len(mean or std or (0.0, 0.0, 0.0))
        mean, std = list(mean or [0.0] * channels), list(std or [1.0] * channels)
        if len(mean) != len(std) or not all(math.isfinite(m) and s > 0 for m, s in zip(mean, std)):
            raise OptionError(
                "mean and std must have one number per channel, such as three for RGB, for values from 0 to 1, and std "
                "must be greater than 0."
            )
        self._scale = [1 / (255 * deviation) for deviation in std]
        self._bias = [-value / deviation for value, deviation in zip(mean, std)]
        self._factors: Optional[Tuple[Any, Any]] = None

    def check(self, images: Any) -> None:
        """Raises OptionError if the reader already makes normalised floats."""
        if self.is_normalized and str(images.dtype) != "torch.uint8":
            raise OptionError(
                "mean and std are for uint8 images, but the transform produces floats: remove mean "
                "and std, or normalize."
            )
        if self.is_normalized and images.shape[-3] != len(self._scale):
            raise OptionError(
                f"mean and std have {len(self._scale)} numbers, but images have {images.shape[-3]} channels: give one "
                "number per channel."
            )

    def __call__(self, images: Any) -> Any:
        """Converts images on the device, in the current stream."""
        import torch

        if self.dtype is None:
            return images
        dtype = getattr(torch, self.dtype)
        if images.dtype != torch.uint8 or dtype == torch.uint8:
            return images.to(dtype)
        if self._factors is None:
            factors = (torch.tensor(list(values)).view(1, -1, 1, 1) for values in (self._scale, self._bias))
            scale, bias = (factor.to(images.device) for factor in factors)
            self._factors = scale, bias
        scale, bias = self._factors
        return images.to(torch.float32).mul_(scale).add_(bias).to(dtype)


class DeviceBatches(BatchesAhead["OnDevice"]):
    """The batches of one loop, which are copied to the device ahead of the loop."""

    def __init__(self, loader: Loader, reader: ReaderProcess, cuda: Cuda, slots: PinnedSlots, values: Values) -> None:
        super().__init__(loader, reader)
        self._cuda = cuda
        self._slots = slots
        self._values = values
        # A loop that ended early may still copy from slots that the reader is about to fill again.
        cuda.synchronize()

    def _finish(self, taken: OnDevice) -> Batch:
        self._cuda.hand_over(taken.ready, _tensors(taken.batch))
        self._loader._count(taken.header)
        return taken.batch

    def _begin(self, batch: Batch, header: Dict[str, Any]) -> OnDevice:
        if isinstance(batch.images, list):
            raise OptionError(
                "The option device needs images of one size: remove collate='list' and transform='raw', or device."
            )
        if batch.images is None:
            return self._begin_arrays(batch, header)
        for tensor in (batch.images, *(view for group in batch.views.values() for view in group)):
            self._values.check(tensor)
        is_pinned = self._slots.use(self._reader.memory())

        def copy(tensor: Any, in_slot: bool = True) -> Any:
            return self._cuda.copy(tensor if in_slot and is_pinned else self._cuda.pinned(tensor))

        images = copy(batch.images)
        extra_images = {name: copy(tensor) for name, tensor in batch.extra_images.items()}
        views = with_first_view(images, batch.views, copy)
        masks = {name: copy(tensor) for name, tensor in batch.masks.items()}
        labels = copy(batch.labels, in_slot=False)
        soft_labels = None if batch.soft_labels is None else copy(batch.soft_labels, in_slot=False)
        objects = {name: copy(tensor, in_slot=False) for name, tensor in _objects(batch).items()}
        # The slot is in use up to here.
        self._loader._hold_until(self._cuda.record())

        made: Batch = Batch([self._cuda.convert(self._values, images), labels, *batch[2:]])
        made.__dict__.update(batch.__dict__)
        made.extra_images = {name: self._cuda.convert(self._values, tensor) for name, tensor in extra_images.items()}
        made.masks = masks
        made.views = with_first_view(made[0], views, lambda tensor: self._cuda.convert(self._values, tensor))
        made.soft_labels = soft_labels
        points = objects.pop("points", None)
        made.__dict__.update(objects)
        if batch.polygons is not None:
            made.polygons = batch.polygons._replace(points=points)
        return OnDevice(made, self._cuda.record(), header)

    def _begin_arrays(self, batch: Batch, header: Dict[str, Any]) -> OnDevice:
        """Copies the arrays and labels of samples without images. Lists and other fields stay on the host."""
        if self._values.dtype is not None:
            raise OptionError("dtype, mean and std convert images, and the samples have none: remove them.")
        is_pinned = len(header["arrays"]) > 0 and self._slots.use(self._reader.memory())
        stacked = {array["name"] for array in header["arrays"]}

        def copy(name: str, tensor: Any) -> Any:
            return self._cuda.copy(tensor if is_pinned and name in stacked else self._cuda.pinned(tensor))

        fields = {name: copy(name, value) if _is_tensor(value) else value for name, value in batch.fields.items()}
        labels = self._cuda.copy(self._cuda.pinned(batch.labels))
        if stacked:
            # The slot is in use up to here.
            self._loader._hold_until(self._cuda.record())
        made: Batch = Batch([fields, labels, *batch[2:]])
        made.__dict__.update(batch.__dict__)
        made.fields = fields
        return OnDevice(made, self._cuda.record(), header)


def with_arrays(batch: Batch, how: Callable[[Any], Any]) -> Batch:
    """A batch without images, with what ``how`` makes of the tensors of its fields."""
    fields = {name: how(value) if _is_tensor(value) else value for name, value in batch.fields.items()}
    made: Batch = Batch([fields, *batch[1:]])
    made.__dict__.update(batch.__dict__)
    made.fields = fields
    return made


def _is_tensor(value: Any) -> bool:
    """Texts, and arrays of dtypes that torch lacks, are not tensors."""
    return hasattr(value, "is_cuda")


class OnDevice(NamedTuple):
    """A batch on the device."""

    batch: Batch
    #: Event after which the tensors are ready.
    ready: Any
    header: Dict[str, Any]


def with_first_view(first: Any, views: Mapping[str, Sequence[Any]], how: Callable[[Any], Any]) -> Dict[str, List[Any]]:
    """Applies ``how`` to all views except the first one of the first group. ``first`` is the result for that view."""
    made: Dict[str, List[Any]] = {}
    for name, tensors in views.items():
        made[name] = [how(tensor) for tensor in tensors] if made else [first, *map(how, tensors[1:])]
    return made


def _tensors(batch: Batch) -> List[Any]:
    views = [view for group in batch.views.values() for view in group]
    soft = [] if batch.soft_labels is None else [batch.soft_labels]
    along = [*soft, *views, *batch.extra_images.values(), *batch.masks.values(), *_objects(batch).values()]
    images = [value for value in batch.fields.values() if _is_tensor(value)] if batch.images is None else [batch.images]
    return [*images, batch.labels, *along]


def _objects(batch: Batch) -> Dict[str, Any]:
    """Copies annotations to the device. Offsets stay on the host, which slices by them."""
    points = None if batch.polygons is None else batch.polygons.points
    named = {"boxes": batch.boxes, "box_labels": batch.box_labels, "keypoints": batch.keypoints, "points": points}
    return {name: values for name, values in named.items() if values is not None}
