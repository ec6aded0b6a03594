"""Shuffled, decoded batches of a dataset."""

from __future__ import annotations

import os
import re
import threading
from types import GenericAlias, MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

from .attributes import KnownAttributes
from .batch import Array, Batch, Images, arrays, read_batch
from .batches_ahead import AHEAD, BatchesAhead
from .bridge.for_reader import options_for_reader, seen_for_reader, transform_for_reader
from .bridge.held_slots import HeldSlots, no_slot
from .bridge.reader_process import ReaderProcess
from .cores import cores_of_this_rank
from .cuda import Cuda, DeviceBatches, PinnedSlots, Values, with_arrays, with_first_view
from .errors import ForkedLoaderError, OptionError, ShardtoolError, StaleIteratorError
from .location import Location, absolute
from .loop import LoaderIterator
from .metrics.address import MetricsAddress, check_metrics, metrics_address
from .metrics.waits import Waits, snake
from .mixture import Mixture
from .options import LoaderArguments
from .python_transform.batches import PythonBatches, PythonOptions, check_python_options
from .ranks import rank_sources

if TYPE_CHECKING:
    from typing import Literal

    import torch
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .batch import DLPackArray
    from .metrics.otlp import OtlpTarget
    from .options import ListArguments, LoaderOptions, RawArguments, RawListArguments, Transform


class Loader(KnownAttributes, Generic[Array, Images]):
    """Shuffled, decoded batches of a dataset.

    ``location`` is a folder that ``shardtool pack`` wrote, a folder of WebDataset tars, a list of tars, or a URL such
    as ``s3://bucket/shards``, ``gs://...``, ``https://...`` or ``hf://datasets/user/name@revision``. For several
    datasets, it is a :class:`shardtool.Mixture`, or a file ``{"mixture": [...]}``.

    A loop goes through one epoch (or ``epochs_per_loop`` of them) and yields a :class:`Batch` at a time. The next loop
    continues with the next epoch. The images of a batch are in memory that is shared with the reader, a child process.
    The reader reuses this memory only when nothing in Python refers to it. A loop that uses one batch after the other
    copies nothing. If you keep ``prefetch_batches`` batches or more, the following ones are copied.

    ``reuse=True`` overwrites the images of a batch when the next one is requested, even if something refers to them.
    That saves the memory of one batch. Frameworks that request batches ahead (Accelerate, JAX) need the default.

    ``output="torch"`` returns images as uint8 [n, 3, h, w] in channels_last, or float32 if the transform makes floats,
    and labels as int64. ``"numpy"`` and ``"dlpack"`` return images in their memory layout, [n, h, w, 3] for uint8.
    ``with_keys`` adds the keys of the samples to the tuple. ``**options``: see :class:`shardtool.LoaderOptions`.

    ``device="cuda"`` (or ``"cuda:1"``) returns tensors on that GPU, ready on the current stream. Bytes are copied two
    batches ahead, on a separate stream. They are converted there to ``dtype`` ("float16", "bfloat16", "float32") and
    normalised with ``mean`` and ``std`` (one number per channel, for values from 0 to 1). ``pin_memory=True`` alone
    returns page-locked CPU tensors.

    These arguments choose what is opened:

    - ``overlay``: the name or file of an overlay, which changes classes and columns, adds splits or excludes samples.
    - ``split``: a split of the location, found by the names of its files, or a split of the overlay.
    - ``exclude_keys``: keys of samples to exclude.
    - ``version``: an earlier version of the dataset, by its identity in ``shardtool log`` or at least 6 digits of it.
    - ``layout``: the format of a location that could have several, such as ``"parquet"``.
    - ``features``: features of TFRecord or datasets of HDF5 with unusual names, such as
      ``{"image": "pixels", "label": "kind", "key": "name"}``.
    - ``max_sample_bytes``: a larger sample is an error. Default: 1 GiB.
    - ``storage``: settings of remote storage, ``endpoint_url``, ``region``, ``unsigned`` and ``requester_pays``.
      Default: environment variables, see docs/remote.md.

    ``python_transform`` is any function, or a pipeline of albumentations or torchvision. After ``transform``,
    ``python_workers`` processes call it with each image; see docs/python-transform.md. A sample that takes longer than
    ``python_timeout`` seconds is a bad sample. ``python_start_method`` is the way to start the processes ("fork",
    "spawn" or "forkserver"). Default: that of multiprocessing.

    ``metrics={"port": 9464}`` serves metrics for Prometheus on this machine while the loader is open, as
    ``SHARDTOOL_METRICS=:9464`` does for all loaders. ``metrics="otlp"`` sends them to the collector that
    ``OTEL_EXPORTER_OTLP_ENDPOINT`` names; see docs/metrics.md.

    The reader starts with the first request. It belongs to the process that made the loader: in a forked process, every
    use raises :class:`ForkedLoaderError`.
    """

    _MADE_WITH = ("output", *LoaderArguments.__annotations__)
    _INSTEAD = MappingProxyType({"sampler": "indices= sets the order of samples", "dataset": "make another Loader"})

    if not TYPE_CHECKING:
        # ``Loader[torch.Tensor]`` in an annotation: Python has had defaults for type variables only since 3.13.
        __class_getitem__ = classmethod(GenericAlias)

    # First, since pyright takes the first one for a dictionary of anything: ``Loader(location, **config)``.
    @overload
    def __init__(
        self: Loader[Any, Any],
        location: Union[Location, Mixture],
        *,
        collate: Literal["list"],
        transform: Literal["raw"],
        output: Literal["torch", "numpy", "dlpack"] = ...,
        **options: Unpack[RawListArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Any, List[Any]],
        location: Union[Location, Mixture],
        *,
        collate: Literal["list"],
        output: Literal["torch", "numpy", "dlpack"] = ...,
        **options: Unpack[ListArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[Any, List[bytes]],
        location: Union[Location, Mixture],
        *,
        transform: Literal["raw"],
        output: Literal["torch", "numpy", "dlpack"] = ...,
        **options: Unpack[RawArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[torch.Tensor],
        location: Union[Location, Mixture],
        *,
        output: Literal["torch"] = ...,
        **options: Unpack[LoaderArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[NDArray[Any]],
        location: Union[Location, Mixture],
        *,
        output: Literal["numpy"],
        **options: Unpack[LoaderArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Loader[DLPackArray],
        location: Union[Location, Mixture],
        *,
        output: Literal["dlpack"],
        **options: Unpack[LoaderArguments],
    ) -> None: ...

    def __init__(
        self,
        location: Union[Location, Mixture],
        *,
        output: Literal["torch", "numpy", "dlpack"] = "torch",
        with_keys: bool = False,
        reuse: bool = False,
        device: str = "cpu",
        dtype: Optional[Literal["uint8", "float16", "bfloat16", "float32"]] = None,
        mean: Optional[Sequence[float]] = None,
        std: Optional[Sequence[float]] = None,
        pin_memory: bool = False,
        overlay: Optional[str] = None,
        split: Optional[str] = None,
        exclude_keys: Optional[Iterable[str]] = None,
        layout: Optional[str] = None,
        features: Optional[Mapping[str, str]] = None,
        max_sample_bytes: Optional[Union[int, str]] = None,
        storage: Optional[Mapping[str, Any]] = None,
        version: Optional[str] = None,
        python_transform: Optional[Callable[..., Any]] = None,
        python_workers: Optional[int] = None,
        python_timeout: Optional[float] = None,
        python_start_method: Optional[Literal["fork", "spawn", "forkserver"]] = None,
        metrics: Union[Mapping[str, Any], Literal["otlp", False], None] = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        if not isinstance(reuse, bool):
            raise OptionError(f"reuse must be True or False, not {reuse!r}.")
        #: How images are converted on the device. None: they stay on the host.
        self._values: Optional[Values] = None
        if device != "cpu":
            _check_device(device, output)
            self._values = Values(dtype, mean, std)
        elif (dtype, mean, std) != (None, None, None):
            raise OptionError(
                'dtype, mean and std are for a GPU: set device="cuda", or use the step normalize in the transform.'
            )
        self._cuda: Optional[Cuda] = None
        self._pinned: Optional[PinnedSlots] = None
        if device != "cpu" or pin_memory:
            if output != "torch":
                raise OptionError('pin_memory is for torch tensors: remove it, or choose output="torch".')
            self._cuda = Cuda(None if device == "cpu" else device)
            self._pinned = PinnedSlots(self._cuda)
        self._location = location.as_location() if isinstance(location, Mixture) else absolute(location)
        self._seen = seen_for_reader(overlay, split, layout, features, exclude_keys, max_sample_bytes, storage, version)
        self._arrays = arrays(output)
        self._python: Optional[PythonOptions] = None
        if python_transform is not None:
            check_python_options(python_workers, python_timeout, python_start_method, device, options)
            self._python = PythonOptions(
                python_transform,
                python_workers or cores_of_this_rank(),
                python_timeout,
                python_start_method,
                str(options.get("on_bad") or "raise"),
                self._arrays,
                with_keys,
                reuse,
            )
            self._arrays = arrays("numpy")
        elif (python_workers, python_timeout, python_start_method) != (None, None, None):
            raise OptionError(
                "python_workers, python_timeout and python_start_method need python_transform: set it, or remove them."
            )
        check_metrics(metrics)
        self._metrics = metrics
        self._served: Optional[MetricsAddress] = None
        self._sent: Optional[OtlpTarget] = None
        #: Whether this loader has tried to serve them since it was closed.
        self._is_served = False
        #: How long loops waited for batches, and why.
        self._waits = Waits(None if self._python is None else self._python.waited)
        self._with_keys = with_keys
        self._reuse = reuse
        self._options = options_for_reader(options, _slots_in_use(device, reuse, self._python))
        self._owner = os.getpid()
        self._reader: Optional[ReaderProcess] = None
        self._dataset: Dict[str, Any] = {}
        #: Options that depend on how a framework reads this loader, and the options with which the reader was opened.
        self._share: Dict[str, Any] = {}
        self._opened_for: Any = None
        #: The state with which a new reader starts: that of load_state_dict, or the run's order at the start of an
        #: epoch.
        self._take_up: Optional[Dict[str, Any]] = None
        #: The epoch of the next loop. None: the reader determines it.
        self._epoch: Optional[int] = None
        #: The transforms of set_epoch, in ascending order of epochs.
        self._transforms: List[Dict[str, Any]] = []
        #: Whether the loop that was started last has delivered a batch.
        self._has_delivered = False
        #: The state after the last batch that was delivered.
        self._delivered: Optional[Dict[str, Any]] = None
        #: With a device, only the copies to it use a slot.
        self._held = HeldSlots(_slots(self._options), reuse=reuse or device != "cpu" or self._python is not None)
        #: Incremented when a loop starts, and when one is ended from outside: only the latest loop may continue.
        self._loops = 0
        #: Number of times that the loader was closed, and a lock that is held while a reader starts.
        self._closes = 0
        self._starting = threading.RLock()
        #: A lock that is held until the dataset is open.
        self._opening = threading.RLock()

    def __iter__(self) -> LoaderIterator[Array, Images]:
        self._check_process()
        self._loops += 1
        return LoaderIterator(self, self._loops)

    def __len__(self) -> int:
        """Number of batches of a whole loop on this rank, even if a loop resumes within the epoch."""
        epochs = self._options.get("epochsPerLoop", 1)
        if epochs == "Infinity":
            raise TypeError("A loader with epochs_per_loop=math.inf has no length.")
        return int(self.info()["epoch_batches"]) * int(epochs)

    if not TYPE_CHECKING:
        # For a DataLoader, which accepts any object with this method. It is hidden from type checkers.
        def __getitem__(self, place):
            raise TypeError(
                "A Loader yields whole batches and cannot be indexed: loop over the Loader itself. For a DataLoader, "
                "use shardtool.Dataset(...), or shardtool.iterable_dataset(...) with batch_size=None."
            )

    @property
    def classes(self) -> List[str]:
        """Names of the classes, in the order of their numbers."""
        self._start()
        return list(self._dataset["classes"])

    @property
    def num_samples(self) -> int:
        """Number of samples in the dataset, over all ranks and before any selection."""
        self._start()
        return int(self._dataset["samples"])

    def set_epoch(self, epoch: int, transform: Optional[Transform] = None) -> None:
        """The next loop begins with this epoch: at its start, or at the position of a loaded state in it.

        Call it between loops. Within a loop, each further batch sets the next epoch again.

        With ``transform``, this epoch and those after it are made with another transform, for example with larger
        images. That starts new decode workers, but not a new reader. The option ``schedule`` starts neither.
        """
        if not isinstance(epoch, int) or not 0 <= epoch < 2**32:
            raise OptionError(f"Invalid epoch {epoch!r}: it must be a whole number of 0 or more.")
        if transform is not None:
            if "schedule" in self._options or "views" in self._options:
                option = "views" if "views" in self._options else "schedule"
                raise OptionError(
                    f"The option {option} sets the transform of every epoch: remove transform, or {option}."
                )
            earlier = [entry for entry in self._transforms if entry["epoch"] < epoch]
            channels = self._options.get("channels", 3)
            self._transforms = [*earlier, {"epoch": epoch, "transform": transform_for_reader(transform, channels)}]
        if epoch != self._epoch:
            # The run is at the start of that epoch now, whatever was delivered before.
            self._delivered = None
        self._epoch = epoch

    def state_dict(self) -> Dict[str, Any]:
        """The position of the run after the last batch that was delivered: plain data, the same on all ranks.

        If :meth:`set_epoch` has set another epoch since, it is the start of that epoch.
        """
        self._check_process()
        if self._delivered is not None:
            return dict(self._delivered)
        return dict(self._start_as_rank().ask("state", epoch=self._epoch, transforms=self._transforms)["state"])

    def with_weights(self, state_dict: Mapping[str, Any], weights: Sequence[float]) -> Dict[str, Any]:
        """Returns a state of this mixture in which the datasets have other weights from that position on. The position
        in each dataset stays exact."""
        answer = self._start().ask("withWeights", state=dict(state_dict), weights=list(weights))
        return dict(answer["state"])

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next loop resumes where :meth:`state_dict` was taken, whatever the number of ranks, workers and rows.

        After the last batch of an epoch, the next epoch follows. If `set_epoch` names the finished epoch, the next
        loop is empty. A loop in progress ends. A state of another dataset or order raises :class:`StateError` at the
        next call that needs the reader.
        """
        self._check_process()
        self._loops += 1
        self._take_up = dict(state_dict)
        self._delivered = None
        self._epoch = None
        # The state names the transform of its epoch.
        self._transforms = []
        if self._reader is not None and not self._reader.is_closed:
            self._open(self._reader)

    def info(self) -> Dict[str, Any]:
        """Facts about the next loop: samples, batches, workers, codec, memory in bytes, and more."""
        info = self._start_as_rank().ask("info", epoch=self._epoch, transforms=self._transforms)["info"]
        return {snake(name): value for name, value in info.items()}

    def report(self) -> Dict[str, Any]:
        """How the time of the loop was spent, in milliseconds, what limits its rate, and which samples were bad."""
        answer = self._start().ask("report")["report"]
        report = {snake(name): value for name, value in answer.items()}
        report["wait"] = self._waits.report()
        if self._python is not None:
            self._python.add_to_report(report)
        return report

    def metrics(self, prefix: str = "shardtool/") -> Dict[str, float]:
        """Totals since the loader was made, and the waits of the last minute, as a flat dict for W&B and TensorBoard.

        Each name begins with ``prefix``. Times are in seconds. docs/metrics.md describes the names.
        """
        return self._waits.flat(prefix)

    @property
    def metrics_url(self) -> Optional[str]:
        """URL at which Prometheus can read the metrics of this process, while they are served. None if they are not."""
        if self._served is None:
            return None
        from .metrics.server import url_of

        return url_of(self._served)

    def _serve_metrics(self) -> None:
        requested = os.environ.get("SHARDTOOL_METRICS", "") if self._metrics is None else self._metrics
        if self._is_served or requested is False or requested == "":
            return
        from .metrics.otlp import otlp_target, send

        address = metrics_address(self._metrics, os.environ)
        target = otlp_target(self._metrics, os.environ)
        if address is not None:
            from .metrics.server import serve

            self._served = serve(address, self)
        if target is not None:
            send(target, self)
            self._sent = target
        self._is_served = True

    def close(self) -> None:
        """Ends the reader. Batches stay valid. The loader may be used again.

        A loop in progress, even in another thread, raises :class:`StaleIteratorError`.
        """
        with self._starting:
            self._loops += 1
            self._closes += 1
        self._drop_reader()
        address, self._served, self._is_served = self._served, None, False
        if address is not None:
            from .metrics.server import leave

            leave(address, self)
        target, self._sent = self._sent, None
        if target is not None:
            from .metrics.otlp import leave as leave_target

            leave_target(target, self)

    def __enter__(self) -> Loader[Array, Images]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> None:
        raise TypeError(
            "A loader cannot be sent to another process: in a DataLoader, set num_workers=0, because the loader has "
            "its own workers, or use shardtool.iterable_dataset(...), which makes a loader in each process."
        )

    def _check_process(self) -> None:
        if os.getpid() != self._owner:
            raise ForkedLoaderError(
                f"This loader belongs to process {self._owner}, but process {os.getpid()}, forked from it, uses it: "
                "create a loader in the process that uses it (in a DataLoader, set num_workers=0), or use "
                "shardtool.iterable_dataset(...), which makes a loader in each process."
            )

    def _start(self, closes: Optional[int] = None) -> ReaderProcess:
        """The reader, started and with the dataset open. Raises an error if the loader was closed more than `closes`
        times."""
        self._check_process()
        closes = self._closes if closes is None else closes
        with self._opening:
            if self._reader is not None and self._reader.is_closed:
                self._drop_reader()
            if self._reader is None:
                try:
                    with self._starting:
                        # A thread that closes the loader now waits until the reader has started and can be closed.
                        self._check_closes(closes)
                        self._reader = ReaderProcess(workers=_workers(self._options))
                    self._check_closes(closes)
                    self._open(self._reader)
                except BaseException:
                    self._drop_reader()
                    raise
            return self._reader

    def _check_closes(self, closes: int) -> None:
        if self._closes != closes:
            raise StaleIteratorError("The loader was closed while it started: start a new loop.")

    def _start_as_rank(self, closes: Optional[int] = None) -> ReaderProcess:
        """Like :meth:`_start`, with the dataset open for the rank that the process has now. A loop of another rank
        ends."""
        with self._opening:
            if self._opened_for not in (None, (self._share, rank_sources())):
                self._drop_reader()
            return self._start(closes)

    def _open(self, reader: ReaderProcess) -> None:
        options = {**self._options, **self._share}
        self._opened_for = (self._share, rank_sources())
        if self._take_up is not None:
            options["state"] = self._take_up
            options.pop("epoch", None)
        self._waits.reader_opens()
        self._dataset = reader.ask(
            "open",
            location=self._location,
            options=options,
            withKeys=self._with_keys or self._python is not None,
            withRowSeeds=self._python is not None,
            seen=self._seen,
            held=self._held.numbers(),
            ranks=self._opened_for[1],
        )
        self._waits.rank = int(self._dataset["rank"])

    def _drop_reader(self) -> None:
        reader, self._reader = self._reader, None
        self._opened_for = None
        self._held.clear()
        if self._pinned is not None:
            self._pinned.release()
        if reader is not None:
            reader.close()
        if self._python is not None:
            self._python.close()

    def _begin(self, closes: int) -> ReaderProcess:
        """Begins a loop with this reader."""
        reader = self._start_as_rank(closes)
        reader.notify("begin", epoch=self._epoch, transforms=self._transforms, held=self._held.numbers())
        self._has_delivered = False
        return reader

    def _batches_ahead(self, reader: ReaderProcess) -> Optional[BatchesAhead[Any]]:
        """Takes the batches of a loop to a device or through the user's function. None if they need neither."""
        if self._python is not None:
            return PythonBatches(self, reader, self._python)
        if self._values is None:
            return None
        assert self._cuda is not None and self._pinned is not None
        return DeviceBatches(self, reader, self._cuda, self._pinned, self._values)

    def _next_batch(self, reader: ReaderProcess) -> Optional[Batch[Array, Images]]:
        """The next batch; None at the end of the loop."""
        received = self._receive(reader)
        if received is None:
            return None
        batch, header = received
        self._count(header)
        is_in_slot = header["images"] is not None or len(header["arrays"]) > 0
        if self._cuda is not None and self._pinned is not None and is_in_slot:
            # The end of the caller's asynchronous copies cannot be observed, except for copies from memory of torch,
            # which torch keeps until then.
            stays_in_slot = self._reuse and self._pinned.use(reader.memory())
            return batch if stays_in_slot else _copied_to_pinned(batch, self._cuda)
        return batch

    def _receive(self, reader: ReaderProcess) -> Optional[Tuple[Batch[Array, Images], Dict[str, Any]]]:
        """The next batch and its header, which is for :meth:`_count`. None at the end of the loop."""
        try:
            frame = reader.request("next", release=self._held.release())
        except ShardtoolError:
            raise
        except BaseException:
            # The batch that was requested is lost, so this loop cannot continue.
            reader.close()
            raise
        header = frame.header
        if "totals" in header:
            self._waits.take(header["totals"])
        if header["kind"] == "end":
            if not self._has_delivered:
                # The requested epoch had no samples left, so the reader determines the next loop.
                self._epoch = None
            return None
        is_in_slot = header["images"] is not None or len(header["arrays"]) > 0
        in_slot = self._held.hold(header["number"], reader.memory()) if is_in_slot else no_slot
        return read_batch(frame, in_slot, self._arrays), header

    def _pinned_copy(self, batch: Batch[Array, Images]) -> Batch[Array, Images]:
        """The batch in page-locked memory, if that is requested."""
        return batch if self._cuda is None else _copied_to_pinned(batch, self._cuda)

    def _hold_until(self, event: Any) -> None:
        """The slot of the batch that was received last is in use until this event."""
        self._held.hold_until(event)

    def _count(self, header: Mapping[str, Any]) -> None:
        """Called when a batch is delivered."""
        self._has_delivered = True
        self._delivered = header["state"]
        self._take_up = {**header["state"], "position": 0}
        self._epoch = header["epoch"] + 1


def _check_device(device: str, output: str) -> None:
    if not isinstance(device, str) or re.fullmatch(r"cuda(:\d+)?", device) is None:
        raise OptionError(f'device must be "cpu", "cuda" or "cuda:N", not {device!r}.')
    if output != "torch":
        raise OptionError(f'device={device!r} returns torch tensors: remove output, or set output="torch".')


def _workers(options: Mapping[str, Any]) -> int:
    """Number of decode workers that the reader starts before it has loaded; 0 stands for one per core. If the option
    is invalid, one: the reader then raises the error."""
    workers = options.get("workers", 0)
    return workers if type(workers) is int and workers >= 0 else 1


def _slots(options: Mapping[str, Any]) -> int:
    """Number of the reader's slots. If the option is invalid, any number: the reader then raises the error."""
    slots = options["prefetchBatches"]
    return slots if isinstance(slots, int) else 0


def _slots_in_use(device: str, reuse: bool, python: Optional[PythonOptions]) -> int:
    """Number of slots in addition to those of the batches that are made ahead."""
    if device != "cpu" or python is not None:
        return AHEAD
    # A loop still refers to its batch when it requests the next one.
    return 0 if reuse else 1


def _copied_to_pinned(batch: Batch, cuda: Cuda) -> Batch:
    """A copy of the batch in page-locked memory."""
    if batch.images is None:
        return with_arrays(batch, cuda.pinned)
    copied: Batch = Batch([cuda.pinned(batch.images), *batch[1:]])
    copied.__dict__.update(batch.__dict__)
    copied.extra_images = {name: cuda.pinned(tensor) for name, tensor in batch.extra_images.items()}
    copied.masks = {name: cuda.pinned(tensor) for name, tensor in batch.masks.items()}
    copied.views = with_first_view(copied[0], batch.views, cuda.pinned)
    return copied
