"""A reader of shardtool datasets in one file. It needs only Python 3.8 or newer and its standard library.

It lists a dataset, gets samples, verifies checksums and computes the order of an epoch. It follows docs/format.md and
shares no code with shardtool. It favours clarity over speed: use it to check another implementation, or as a starting
point for one.

    python3 reader.py list DATASET
    python3 reader.py get DATASET KEY FIELD > FILE
    python3 reader.py verify DATASET
    python3 reader.py order DATASET --seed 1 --epoch 0 [--streams 192] [--block-samples 256] [--unit sample]
    python3 reader.py conformance [FOLDER]

As a library:

    dataset = Dataset("shards")
    for sample in dataset.samples():
        print(sample.index, sample.key, sample.label, sample.columns, dataset.field(sample, "jpg"))
"""

import argparse
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple


class FormatError(Exception):
    """A file is damaged, or is not part of a dataset that this reader supports."""


class Field(NamedTuple):
    """Where the payload of a field is stored: `bytes` bytes from `offset` on in the shard's file."""

    offset: int
    bytes: int
    crc32: Optional[int]  # of the payload as it was packed
    is_msgpack: bool  # the payload is stored as a msgpack integer, and was packed as text


class Sample(NamedTuple):
    index: int  # number of the sample in the dataset, from 0
    shard: int
    key: str
    label: int  # -1: no class
    fields: Dict[str, Field]
    columns: Dict[str, Any]  # label columns; None where a sample has no value


# --- Thrift's compact protocol (apache/thrift, thrift-compact-protocol.md), as far as Parquet uses it


class Bytes:
    """Bytes with a position, which each read advances."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise FormatError("the file ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise FormatError("a number is too long")

    def zigzag(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def thrift(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return struct.unpack("b", self.take(1))[0]
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 7:
            return struct.unpack("<d", self.take(8))[0]
        if kind == 8:
            return self.take(self.varint())
        if kind in (9, 10):
            (head,) = self.take(1)
            count = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.thrift(head & 15) for _ in range(count)]
        if kind == 12:
            return self.struct()
        raise FormatError(f"Thrift type {kind} is not supported")

    def struct(self) -> Dict[int, Any]:
        """Values by field number."""
        found: Dict[int, Any] = {}
        number = 0
        while True:
            (head,) = self.take(1)
            if head == 0:
                return found
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            found[number] = self.thrift(head & 15)


# --- Parquet (apache/parquet-format, parquet.thrift and Encodings.md): one row group, one data page (v2) per column

BOOLEAN, INT32, INT64, DOUBLE, BYTE_ARRAY = 0, 1, 2, 5, 6
PLAIN, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY = 0, 5, 6
UINT_32 = 13
SEAL = b"shardtool.crc32"


def check_seal(file: bytes) -> None:
    """Checks the crc32 of the file: the last entry of its metadata, computed with zeros in place of its digits."""
    at = file.rfind(SEAL)
    begin = at + len(SEAL) + 2  # the header of a Thrift field, and the length of the text
    sealed = file[begin : begin + 8]
    computed = zlib.crc32(file[:begin] + b"00000000" + file[begin + 8 :])
    if at < 0 or sealed != f"{computed:08x}".encode():
        raise FormatError("its checksum is wrong: it is damaged, or shardtool did not write it")


def read_parquet(file: bytes) -> Tuple[int, Dict[str, List[Any]], Dict[str, str]]:
    """Returns the number of rows, the columns by name, and the metadata. A row without a value is None."""
    if file[:4] != b"PAR1" or file[-4:] != b"PAR1":
        raise FormatError("it is not a Parquet file")
    check_seal(file)
    (length,) = struct.unpack("<I", file[-8:-4])
    footer = Bytes(file, len(file) - 8 - length).struct()
    elements = footer[2][1:]
    chunks = footer[4][0][1] if footer[4] else []
    columns = {}
    for element, chunk in zip(elements, chunks):
        name = element[4].decode()
        columns[name] = read_column(file, element, chunk[3], footer[3])
    metadata = {entry[1].decode(): entry[2].decode() for entry in footer.get(5, [])}
    return footer[3], columns, metadata


def read_column(file: bytes, element: Dict[int, Any], chunk: Dict[int, Any], rows: int) -> List[Any]:
    reader = Bytes(file, chunk[9])
    header = reader.struct()
    page = header[8]
    stored = reader.take(header[3])
    if zlib.crc32(stored) != header[4] & 0xFFFFFFFF:
        raise FormatError(f"the page of column {element[4].decode()} is damaged")
    levels, values = stored[: page[5]], stored[page[5] :]
    if chunk[4] == 1:
        values = decompress_snappy(values)
    present = read_levels(levels, rows) if element.get(3) == 1 else [True] * rows
    found = iter(read_values(values, page[4], chunk[1], sum(present), element.get(6) == UINT_32))
    return [next(found) if is_present else None for is_present in present]


def read_levels(levels: bytes, rows: int) -> List[bool]:
    """Definition levels of 0 and 1: runs of one value, and groups of eight bits."""
    reader = Bytes(levels)
    present: List[bool] = []
    while len(present) < rows:
        head = reader.varint()
        if head & 1:
            present += [bool(byte >> bit & 1) for byte in reader.take(head >> 1) for bit in range(8)]
        else:
            present += [reader.take(1) == b"\x01"] * min(head >> 1, rows)
    return present[:rows]


def read_values(values: bytes, encoding: int, kind: int, count: int, unsigned: bool) -> List[Any]:
    if encoding == DELTA_BINARY_PACKED:
        return read_delta(Bytes(values))[:count]
    if encoding == DELTA_LENGTH_BYTE_ARRAY:
        reader = Bytes(values)
        return [reader.take(length).decode("utf-8", "surrogatepass") for length in read_delta(reader)]
    if encoding != PLAIN:
        raise FormatError(f"Parquet encoding {encoding} is not supported")
    if kind == BOOLEAN:
        return [bool(values[i // 8] >> i % 8 & 1) for i in range(count)]
    code = {INT32: "I" if unsigned else "i", INT64: "q", DOUBLE: "d"}.get(kind)
    if code is None:
        raise FormatError(f"Parquet type {kind} is not supported")
    return list(struct.unpack_from(f"<{count}{code}", values))


def read_delta(reader: Bytes) -> List[int]:
    block, miniblocks, count = reader.varint(), reader.varint(), reader.varint()
    values = [reader.zigzag()]
    while len(values) < count:
        least = reader.zigzag()
        for width in reader.take(miniblocks):
            if len(values) >= count:
                break
            packed = int.from_bytes(reader.take(block // miniblocks * width // 8), "little")
            for i in range(min(block // miniblocks, count - len(values))):
                values.append(values[-1] + least + (packed >> i * width & (1 << width) - 1))
    return values[:count]


def decompress_snappy(data: bytes) -> bytes:
    """A Snappy block (google/snappy, format_description.txt)."""
    reader = Bytes(data)
    length = reader.varint()
    found = bytearray()
    while reader.at < len(data):
        (tag,) = reader.take(1)
        kind, count = tag & 3, (tag >> 2) + 1
        if kind == 0:
            if count > 60:
                count = int.from_bytes(reader.take(count - 60), "little") + 1
            found += reader.take(count)
            continue
        if kind == 1:
            count = (tag >> 2 & 7) + 4
            distance = tag >> 5 << 8 | reader.take(1)[0]
        else:
            distance = int.from_bytes(reader.take(2 if kind == 2 else 4), "little")
        if not 0 < distance <= len(found):
            raise FormatError("compressed bytes are damaged")
        for _ in range(count):
            found.append(found[-distance])
    if len(found) != length:
        raise FormatError("compressed bytes are damaged")
    return bytes(found)


# --- msgpack (msgpack/msgpack, spec.md): only integers, since the index has the offsets of all other payloads


def msgpack_integer(data: bytes) -> int:
    first = data[0]
    if first < 0x80:
        return first
    if first >= 0xE0:
        return first - 256
    code = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}.get(first)
    if code is None:
        raise FormatError("a value is not a msgpack integer")
    return struct.unpack(code, data[1:])[0]


# --- A dataset


class Dataset:
    """A folder that `shardtool pack` wrote, in the layout tar, msgpack or LMDB."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        text = (self.folder / "dataset.json").read_bytes()
        try:
            self.manifest = json.loads(text)
            self._check_manifest(text)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{self.folder / 'dataset.json'} is damaged, or is not of a dataset: {error}") from error
        self.counts = [shard["samples"] for shard in self.manifest["shards"]]
        self.classes = [one["name"] for one in self.manifest.get("classes", [])]

    def _check_manifest(self, text: bytes) -> None:
        if self.manifest.get("version") != 1:
            raise FormatError("this reader does not support the version of dataset.json")
        if self.manifest["format"] not in ("tar", "msgpack", "lmdb"):
            raise FormatError(f"shards of the layout {self.manifest['format']} are not supported by this reader")
        crc = self.manifest.get("crc32")
        if crc is not None:
            line = f'"crc32": "{crc}"\n'.encode()
            before, found, after = text.rpartition(line)
            if not found or zlib.crc32(before + line.replace(crc.encode(), b"00000000") + after) != int(crc, 16):
                raise FormatError("the checksum of dataset.json is wrong: it is damaged, or was edited")

    def path(self, shard: int) -> Path:
        """The file with the bytes of a shard."""
        file = self.manifest["shards"][shard]["file"]
        if Path(file).is_absolute() or ".." in Path(file).parts:
            raise FormatError(f"the shard {file!r} is outside of the dataset")
        return self.folder / file

    def shard(self, shard: int) -> List[Sample]:
        """The samples of a shard, in the order in which they were packed."""
        file = Path(self.manifest["shards"][shard]["file"])
        path = self.folder / (file.parent if file.name == "data.mdb" else file).with_suffix(".parquet")
        try:
            rows, columns, metadata = read_parquet(path.read_bytes())
            about = json.loads(metadata["shardtool.index"])
        except (FormatError, KeyError, IndexError, ValueError, struct.error) as error:
            raise FormatError(f"{path}: {error}") from error
        if rows != self.counts[shard]:
            raise FormatError(f"{path} has {rows} rows, but dataset.json has {self.counts[shard]}")
        first = sum(self.counts[:shard])
        labels = about["columns"]
        return [
            Sample(
                index=first + row,
                shard=shard,
                key=columns["key"][row],
                label=columns["cls"][row] if "cls" in columns else -1,
                fields={name: field for name in about["fields"] for field in _field(columns, name, row)},
                columns={name: columns[name][row] for name in labels},
            )
            for row in range(rows)
        ]

    def samples(self) -> Iterator[Sample]:
        for shard in range(len(self.counts)):
            yield from self.shard(shard)

    def field(self, sample: Sample, name: str) -> bytes:
        """The payload of a field, as it was packed. Raises FormatError if its bytes have changed."""
        if name not in sample.fields:
            raise KeyError(f"The sample {sample.key} has no field {name}. It has: {', '.join(sample.fields)}.")
        field = sample.fields[name]
        with self.path(sample.shard).open("rb") as file:
            file.seek(field.offset)
            payload = file.read(field.bytes)
        if len(payload) < field.bytes:
            raise FormatError(f"{self.path(sample.shard)} ends within the field {name} of {sample.key}")
        if field.is_msgpack:
            payload = str(msgpack_integer(payload)).encode()
        if field.crc32 is not None and zlib.crc32(payload) != field.crc32:
            raise FormatError(
                f"the field {name} of {sample.key} in {self.path(sample.shard)} has changed since it was packed"
            )
        return payload

    def verify(self) -> List[str]:
        """Checks each file and each payload. Returns a sentence for each fault."""
        faults = []
        for shard, about in enumerate(self.manifest["shards"]):
            try:
                crc = size = 0
                with self.path(shard).open("rb") as file:
                    for piece in iter(lambda: file.read(1 << 20), b""):
                        crc, size = zlib.crc32(piece, crc), size + len(piece)
                if (size, f"{crc:08x}") != (about["bytes"], about["crc32"]):
                    faults.append(f"{self.path(shard)} has changed since it was packed")
                samples = self.shard(shard)
            except (OSError, FormatError) as error:
                faults.append(str(error))
                continue
            for sample in samples:
                for name in sample.fields:
                    try:
                        self.field(sample, name)
                    except FormatError as error:
                        faults.append(str(error))
        return faults

    def order(self, **options: Any) -> List[int]:
        """Indices of all samples in the order of an epoch: see :func:`order`."""
        return order(self.counts, **options)

    def rest(self, state: Dict[str, Any]) -> List[int]:
        """Indices of the remaining samples in the epoch of a loader with this state, for all ranks together."""
        plain = {"version": 1, "dataset": self.manifest["identity"], "selection": "", "epochSamples": None}
        plain["repeats"] = None
        if any(state.get(name) != value for name, value in plain.items()):
            raise FormatError("this reader only resumes runs over all samples of a dataset that has not changed")
        options = {name: state[name] for name in ("seed", "epoch", "streams", "unit", "shuffle")}
        return self.order(block_samples=state["blockSamples"], **options)[state["position"] :]


def _field(columns: Dict[str, List[Any]], name: str, row: int) -> List[Field]:
    """Yields the field of a row, or nothing if the sample lacks it."""
    offset, size = columns[f"{name}.offset"][row], columns[f"{name}.bytes"][row]
    if offset is None or size is None:
        return []
    crc = columns.get(f"{name}.crc32")
    msgpack = columns.get(f"{name}.msgpack")
    return [Field(offset, size, crc and crc[row], bool(msgpack and msgpack[row]))]


# --- The order of an epoch


def philox(counter: Tuple[int, int, int, int], seed: int) -> Tuple[int, int, int, int]:
    """Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011)."""
    a, b, c, d = counter
    k, m = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        x, y = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (y >> 32) ^ b ^ k, y & 0xFFFFFFFF, (x >> 32) ^ d ^ m, x & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def permute(values: List[Any], seed: int, epoch: int, stream: int, block: int) -> None:
    """Fisher-Yates shuffle, from the front."""
    for i in range(len(values)):
        j = philox((i // 4, block, stream, epoch), seed)[i % 4] * (i + 1) >> 32
        values[i], values[j] = values[j], values[i]


def default_unit(counts: List[int], streams: int, block_samples: int) -> str:
    if sum(counts) <= streams * block_samples:
        return "sample"
    return "shard" if len(counts) >= 2 * streams else "chunk"


def order(
    counts: List[int],
    seed: int,
    epoch: int,
    streams: int,
    block_samples: int,
    unit: Optional[str] = None,
    shuffle: bool = True,
) -> List[int]:
    """Sample indices in the order of an epoch.

    `counts`: number of samples of each shard. `unit`: sample, chunk or shard. Default: by docs/format.md.
    """
    unit = unit or default_unit(counts, streams, block_samples)
    units: List[range] = []
    start = 0
    for count in counts:
        size = {"sample": 1, "chunk": block_samples, "shard": max(1, count)}[unit]
        begins = range(0, count, size) if unit != "shard" else [0]
        units += [range(start + begin, start + min(begin + size, count)) for begin in begins]
        start += count
    if shuffle:
        permute(units, seed, epoch, 0xFFFFFFFF, 0)
    line = [index for one in units for index in one]
    share, longer = divmod(len(line), streams)
    found = {}
    for stream in range(streams):
        first = stream * share + min(stream, longer)
        mine = line[first : first + share + (stream < longer)]
        cut = stream * block_samples // streams
        for block in range((len(mine) + cut) // block_samples + 1):
            begin = max(0, block * block_samples - cut)
            samples = mine[begin : max(begin, (block + 1) * block_samples - cut)]
            if shuffle:
                permute(samples, seed, epoch, stream, block)
            for i, index in enumerate(samples):
                found[(begin + i) * streams + stream] = index
    return [found[position] for position in sorted(found)]


# --- The conformance suite


def listing(dataset: Dataset) -> List[Dict[str, Any]]:
    """The contents as this reader finds them, in the shape of expected.json."""
    return [
        {
            "index": sample.index,
            "key": sample.key,
            "label": sample.label,
            "class": dataset.classes[sample.label] if sample.label >= 0 else None,
            "fields": {
                name: {"bytes": len(payload), "crc32": f"{zlib.crc32(payload):08x}"}
                for name in sorted(sample.fields)
                for payload in [dataset.field(sample, name)]
            },
            "columns": sample.columns,
        }
        for sample in dataset.samples()
    ]


def conformance(folder: Path) -> List[str]:
    """Reads each dataset of the suite, and returns a sentence for each difference."""
    wrong = []
    for file in sorted(folder.glob("*/expected.json")):
        expected = json.loads(file.read_text("utf-8"))
        dataset = Dataset(str(file.parent / "dataset"))
        for found, sample in zip(listing(dataset), expected["samples"]):
            if found != sample:
                wrong.append(f"{file.parent.name}: {sample['key']} differs: {found}")
        if sum(dataset.counts) != len(expected["samples"]):
            wrong.append(f"{file.parent.name}: another number of samples")
        for one in expected["orders"]:
            if dataset.order(**one["options"]) != one["order"]:
                wrong.append(f"{file.parent.name}: another order with {one['options']}")
        for one in expected["states"]:
            if dataset.rest(one["state"]) != one["rest"]:
                wrong.append(f"{file.parent.name}: other samples after position {one['state']['position']}")
        wrong += dataset.verify()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("list", "get", "verify", "order"):
        command = commands.add_parser(name)
        command.add_argument("dataset")
    commands.choices["get"].add_argument("key")
    commands.choices["get"].add_argument("field")
    for name, default in (("seed", 0), ("epoch", 0), ("streams", 192), ("block-samples", 256)):
        commands.choices["order"].add_argument(f"--{name}", type=int, default=default)
    commands.choices["order"].add_argument("--unit", choices=("sample", "chunk", "shard"))
    commands.add_parser("conformance").add_argument("folder", nargs="?", default=str(Path(__file__).parent))
    args = parser.parse_args()
    try:
        return run(args)
    except (FormatError, KeyError, OSError) as error:
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 1


def run(args: argparse.Namespace) -> int:
    if args.command == "conformance":
        wrong = conformance(Path(args.folder))
        print("\n".join(wrong) or "All datasets of the suite are read as expected.")
        return 1 if wrong else 0
    dataset = Dataset(args.dataset)
    if args.command == "list":
        for sample in dataset.samples():
            print(json.dumps({"index": sample.index, "key": sample.key, "label": sample.label, **sample.columns}))
    elif args.command == "get":
        for sample in dataset.samples():
            if sample.key == args.key:
                sys.stdout.buffer.write(dataset.field(sample, args.field))
                return 0
        raise KeyError(f"No sample has the key {args.key}.")
    elif args.command == "verify":
        faults = dataset.verify()
        print("\n".join(faults) or f"{sum(dataset.counts)} samples are as they were packed.")
        return 1 if faults else 0
    else:
        options = {name: getattr(args, name) for name in ("seed", "epoch", "streams", "block_samples", "unit")}
        print("\n".join(map(str, dataset.order(**options))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
