"""Images with other channels and depths than 8-bit RGB, against Pillow, NumPy, torch and tifffile."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import functional as F

import shardtool
from datasets import CHECKOUT, pack

pytestmark = pytest.mark.usefixtures("lent_readers")

PHOTOS = CHECKOUT / "examples" / "photos"
EXACT = {"shuffle": False, "output": "numpy", "decode": "exact", "workers": 1}


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def tiff(array, order="<", compressed=False, rows_per_strip=4):
    """A TIFF [h, w, c] of bands, in strips (TIFF 6.0, sections 2 and 8)."""
    height, width, channels = array.shape
    kind = {"u": 1, "i": 2, "f": 3}[array.dtype.kind]
    strips = [array[top : top + rows_per_strip] for top in range(0, height, rows_per_strip)]
    data = [strip.astype(array.dtype.newbyteorder(order)).tobytes() for strip in strips]
    if compressed:
        data = [zlib.compress(one) for one in data]
    offsets = list(np.cumsum([8, *map(len, data)])[:-1])
    tags = {
        256: ("H", [width]),
        257: ("H", [height]),
        258: ("H", [array.dtype.itemsize * 8] * channels),
        259: ("H", [8 if compressed else 1]),
        262: ("H", [1]),
        273: ("I", offsets),
        277: ("H", [channels]),
        278: ("H", [rows_per_strip]),
        279: ("I", list(map(len, data))),
        339: ("H", [kind] * channels),
    }
    end = 8 + sum(map(len, data))
    at = end + 2 + 12 * len(tags) + 4
    entries, more = b"", b""
    for tag, (letter, values) in tags.items():
        packed = struct.pack(f"{order}{len(values)}{letter}", *values)
        if len(packed) > 4:
            packed, more = struct.pack(order + "I", at + len(more)), more + packed
        entries += struct.pack(order + "HHI", tag, {"H": 3, "I": 4}[letter], len(values)) + packed.ljust(4, b"\0")
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", end)
    directory = struct.pack(order + "H", len(tags)) + entries + bytes(4)
    return head + b"".join(data) + directory + more


def png(mode, pixels):
    file = io.BytesIO()
    Image.fromarray(pixels, mode).save(file, "png")
    return file.getvalue()


def png16(array, colour_type):
    """A PNG of 16 bits, which Pillow writes for gray only. Not filtered."""
    height, width = array.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in array)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def written(folder, **fields):
    """A dataset whose samples have the n-th value of each field."""
    image = {} if {"npy", "png", "tif"} & set(fields) else {"npy": npy(np.zeros((1, 1, 3), np.uint8))}
    with shardtool.Writer(folder) as writer:
        for number, values in enumerate(zip(*fields.values())):
            writer.add(f"{number:04}", **image, **dict(zip(fields, values)))
    return folder


def images_of(location, **options):
    with shardtool.Loader(location, batch_size=64, **{**EXACT, **options}) as loader:
        batches = [batch.images for batch in loader]
    return np.concatenate(batches)


def random_array(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(shape) * 1000).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


ARRAYS = [("uint8", 1), ("uint8", 4), ("uint8", 5), ("uint16", 1), ("uint16", 3), ("int16", 2), ("float32", 13)]


def test_arrays_arrive_as_they_are_stored(tmp_path):
    arrays = {
        f"{dtype}x{channels}.npy": [random_array(dtype, (9, 11, channels), seed) for seed in range(5)]
        for dtype, channels in ARRAYS
    }
    location = written(tmp_path / "shards", **{name: list(map(npy, some)) for name, some in arrays.items()})
    for (name, stored), (dtype, channels) in zip(arrays.items(), ARRAYS):
        given = images_of(location, channels=channels, pixel_dtype=dtype, image=name)
        expected = np.stack(stored)
        assert given.dtype == expected.dtype
        np.testing.assert_array_equal(given, np.moveaxis(expected, -1, 1) if dtype == "float32" else expected)


def test_float32_takes_arrays_of_any_numbers(tmp_path):
    dtypes = ["uint8", "int8", "uint16", ">i2", "float16", ">f4", "float64", "int32"]
    arrays = [(random_array("float32", (6, 7), seed) / 40).astype(dtype) for seed, dtype in enumerate(dtypes)]
    location = written(tmp_path / "shards", npy=[npy(array) for array in arrays])
    given = images_of(location, channels=1, pixel_dtype="float32")
    np.testing.assert_array_equal(given[:, 0], np.stack([array.astype("float32") for array in arrays]))


TIFFS = [
    {},
    {"planarconfig": "separate"},
    {"compression": "zlib"},
    {"compression": "zlib", "predictor": True},
    {"tile": (16, 16), "compression": "zlib"},
    {"planarconfig": "separate", "tile": (16, 32)},
    {"rowsperstrip": 5, "byteorder": ">"},
]


def tiff_of(tifffile, array, options):
    """A TIFF that tifffile writes, and reads as this array [h, w, c]."""
    how = {"photometric": "minisblack", "planarconfig": "contig", **options}
    stored = array
    if array.shape[-1] == 1:
        del how["planarconfig"]
        stored = array[..., 0]
    elif how["planarconfig"] == "separate":
        stored = np.moveaxis(array, -1, 0)
    file = io.BytesIO()
    tifffile.imwrite(file, stored, **how)
    np.testing.assert_array_equal(tifffile.imread(io.BytesIO(file.getvalue())), stored)
    return file.getvalue()


def test_tiffs_of_any_bands_keep_their_values(tmp_path):
    formats = [("uint8", 2), ("uint16", 6), ("int16", 1), ("float32", 5), ("float16", 2), ("float64", 1)]
    arrays = {f"{dtype}x{n}.tif": (random_array("float32", (11, 9, n), n) / 8).astype(dtype) for dtype, n in formats}
    how = [("<", False), (">", False), ("<", True), (">", True)]
    files = {name: [tiff(array, order, packed) for order, packed in how] for name, array in arrays.items()}
    location = written(tmp_path / "shards", **files)
    for (name, array), (dtype, channels) in zip(arrays.items(), formats):
        stored = "float32" if "float" in dtype else dtype
        steps = [{"name": "layout", "layout": "nhwc"}]
        given = images_of(location, channels=channels, pixel_dtype=stored, transform=steps, image=name)
        for one in given:
            np.testing.assert_array_equal(one, array.astype(stored))


def test_tiffs_arrive_as_tifffile_reads_them(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    formats = [("uint16", 1), ("uint16", 5), ("int16", 2), ("float32", 3), ("uint8", 7)]
    arrays = {f"{dtype}x{channels}.tif": random_array(dtype, (37, 45, channels), 1) for dtype, channels in formats}

    def files(array):
        # tifffile needs another package for a predictor of floats.
        given = [one for one in TIFFS if "predictor" not in one or array.dtype != np.float32]
        return [tiff_of(tifffile, array, one) for one in [*given, {}]][: len(TIFFS)]

    location = written(tmp_path / "shards", **{name: files(array) for name, array in arrays.items()})
    for (name, array), (dtype, channels) in zip(arrays.items(), formats):
        steps = [{"name": "layout", "layout": "nhwc"}]
        given = images_of(location, channels=channels, pixel_dtype=dtype, transform=steps, image=name)
        for one in given:
            np.testing.assert_array_equal(one, array)


def test_tiffs_of_libtiff_arrive_as_pillow_reads_them(tmp_path):
    gradient = (np.add.outer(np.arange(200), np.arange(300)) * 97 % 65_536).astype("uint16")
    images = [gradient, random_array("uint16", (200, 300), 1)]
    how = [(one, {"compression": c}) for one in images for c in ("tiff_lzw", "packbits", "tiff_adobe_deflate", None)]
    how += [(gradient, {"compression": "tiff_lzw", "tiffinfo": {317: 2}})]
    floats = random_array("float32", (200, 300), 2)

    def saved(array, options):
        file = io.BytesIO()
        Image.fromarray(array).save(file, "tiff", **options)
        return file.getvalue()

    location = written(
        tmp_path / "shards",
        **{
            "words.tif": [saved(array, options) for array, options in how],
            "floats.tif": [saved(floats, {"compression": "tiff_adobe_deflate", "tiffinfo": {317: 3}})] * len(how),
        },
    )
    given = images_of(location, channels=1, pixel_dtype="uint16", image="words.tif")
    np.testing.assert_array_equal(given[..., 0], np.stack([array for array, _ in how]))
    given = images_of(location, channels=1, pixel_dtype="float32", image="floats.tif")
    np.testing.assert_array_equal(given[0, 0], floats)


def test_pngs_of_16_bits_keep_them(tmp_path):
    kinds = {"gray.png": (0, 1), "la.png": (4, 2), "rgb.png": (2, 3), "rgba.png": (6, 4)}
    arrays = {name: [random_array("uint16", (12, 10, n), seed) for seed in range(3)] for name, (_, n) in kinds.items()}
    files = {name: [png16(array, kinds[name][0]) for array in some] for name, some in arrays.items()}
    location = written(tmp_path / "shards", **files)
    for name, some in arrays.items():
        channels, stored = kinds[name][1], np.stack(some)
        given = images_of(location, channels=channels, pixel_dtype="uint16", image=name)
        np.testing.assert_array_equal(given, stored)
        rgba = images_of(location, channels=4, pixel_dtype="uint16", image=name)
        colours = stored[..., :3] if channels > 2 else np.repeat(stored[..., :1], 3, -1)
        alpha = stored[..., -1:] if channels in (2, 4) else np.full((3, 12, 10, 1), 65_535)
        np.testing.assert_array_equal(rgba, np.concatenate([colours, alpha], -1))


def test_one_channel_is_the_luma_of_pillow(tmp_path):
    rng = np.random.default_rng(3)
    kinds = {
        "RGB": rng.integers(0, 256, (20, 30, 3), np.uint8),
        "RGBA": rng.integers(0, 256, (20, 30, 4), np.uint8),
        "L": rng.integers(0, 256, (20, 30), np.uint8),
    }
    files = [png(mode, array) for mode, array in kinds.items()]
    location = written(tmp_path / "shards", png=files)
    given = images_of(location, channels=1)
    expected = [np.asarray(Image.open(io.BytesIO(file)).convert("L")) for file in files]
    np.testing.assert_array_equal(given[..., 0], np.stack(expected))


def test_one_channel_of_a_jpeg_is_its_luma(tmp_path):
    location = pack(PHOTOS, tmp_path / "shards")
    options = {"channels": 1, "collate": "list", "with_keys": True}
    with shardtool.Loader(location, batch_size=64, **{**EXACT, **options}) as loader:
        [(images, _, keys)] = list(loader)
    for image, key in zip(images, keys):
        [file] = PHOTOS.glob(f"{key}.*")
        with Image.open(file) as photo:
            if photo.format != "JPEG" or photo.mode == "CMYK":
                expected, tolerance = np.asarray(photo.convert("L")), 0
            else:
                photo.draft("L", photo.size)
                expected, tolerance = np.asarray(photo), 1
        assert image.shape == (*expected.shape, 1)
        assert np.abs(image[..., 0].astype(int) - expected).max() <= tolerance


def test_alpha_is_kept_or_composed(tmp_path):
    arrays = [random_array("uint8", (16, 18, 4), seed) for seed in range(3)]
    location = written(tmp_path / "shards", png=[png("RGBA", array) for array in arrays])
    np.testing.assert_array_equal(images_of(location, channels=4), np.stack(arrays))
    np.testing.assert_array_equal(images_of(location), np.stack(arrays)[..., :3])
    given = images_of(location, background=[250, 10, 100])
    for array, one in zip(arrays, given):
        behind = Image.new("RGBA", (18, 16), (250, 10, 100, 255))
        expected = np.asarray(Image.alpha_composite(behind, Image.fromarray(array)).convert("RGB"))
        assert np.abs(one.astype(int) - expected).max() <= 1


def test_gray_images_with_alpha_show_a_coloured_background(tmp_path):
    array = random_array("uint8", (16, 18, 2), 1)
    deep = png16(array.astype(np.uint16) * 257, 4)
    location = written(tmp_path / "shards", png=[png("LA", array), deep])
    behind = Image.new("RGBA", (18, 16), (250, 10, 100, 255))
    gray = Image.fromarray(array, "LA").convert("RGBA")
    expected = np.asarray(Image.alpha_composite(behind, gray).convert("RGB")).astype(int)
    for given in images_of(location, background=[250, 10, 100]):
        assert np.abs(given - expected).max() <= 1


def test_an_image_of_one_row_that_has_all_pixels_allowed_is_resized(tmp_path):
    row = random_array("float32", (1, 1_000_000, 1), 4)
    location = written(tmp_path / "shards", npy=[npy(row)])
    resize = [{"name": "resize", "size": [4, 64]}]
    [given] = images_of(location, channels=1, pixel_dtype="float32", transform=resize, max_pixels=row.size)
    expected = np.asarray(Image.fromarray(row[:, :, 0]).resize((64, 4), Image.BILINEAR))
    np.testing.assert_allclose(given[0], expected, atol=1e-3)


FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS, "box": Image.BOX}


def test_resizes_are_those_of_pillow_and_torch(tmp_path):
    gray, floats = random_array("uint8", (40, 50, 1), 1), random_array("float32", (40, 50, 1), 2)
    words = {dtype: random_array(dtype, (40, 50, 6), 3) for dtype in ("uint16", "int16")}
    arrays = {"gray.npy": gray, "floats.npy": floats, **{f"{dtype}.npy": array for dtype, array in words.items()}}
    location = written(tmp_path / "shards", **{name: [npy(array)] for name, array in arrays.items()})
    for interpolation, method in FILTERS.items():
        for size in ([13, 17], [70, 90], [40, 50]):
            # A crop after the resize: the kernel computes a part of the result.
            resize = {"name": "resize", "size": size, "interpolation": interpolation}
            steps = [resize, {"name": "centerCrop", "size": [11, 15]}]
            top, left = (size[0] - 11) // 2, (size[1] - 15) // 2
            if (size[0] - 11) % 2 or (size[1] - 15) % 2:
                steps = [resize]
                top, left = 0, 0
            part = (slice(top, top + 11), slice(left, left + 15)) if len(steps) > 1 else (slice(None), slice(None))
            given = images_of(location, channels=1, transform=steps, image="gray.npy")
            expected = np.asarray(Image.fromarray(gray[..., 0]).resize(size[::-1], method))[part]
            np.testing.assert_array_equal(given[0, ..., 0], expected)
            given = images_of(location, channels=1, pixel_dtype="float32", transform=steps, image="floats.npy")
            expected = np.asarray(Image.fromarray(floats[..., 0]).resize(size[::-1], method))[part]
            np.testing.assert_allclose(given[0, 0], expected, rtol=1e-6, atol=1e-3)
            if interpolation not in ("bilinear", "bicubic"):
                continue
            for dtype, array in words.items():
                given = images_of(location, channels=6, pixel_dtype=dtype, transform=steps, image=f"{dtype}.npy")[0]
                tensor = torch.from_numpy(np.moveaxis(array, -1, 0).astype("float64"))[None]
                made = torch.nn.functional.interpolate(tensor, size, mode=interpolation, antialias=True)
                limits = np.iinfo(dtype)
                expected = np.moveaxis(made[0].clamp(limits.min, limits.max).numpy(), 0, -1)[part]
                # Rounded once: half a value, and the error of the floats between the two directions.
                assert np.abs(given - expected).max() <= 0.51


def test_resizes_of_bytes_are_those_of_pillow_in_any_number_of_channels(tmp_path):
    rng = np.random.default_rng(11)
    sizes = [(1, 1, 1), (3, 700, 4), (129, 5, 5), (61, 83, 1), (64, 48, 2), (400, 33, 1), (9, 2100, 1)]
    # Every other one is black and white, which makes filters overshoot.
    arrays = [
        random_array("uint8", size, seed) if seed % 2 else rng.integers(0, 2, size, np.uint8) * 255
        for seed, size in enumerate(sizes)
    ]
    location = written(tmp_path / "shards", **{f"{number}.npy": [npy(array)] for number, array in enumerate(arrays)})
    turned = [{"name": "randomHorizontalFlip", "p": 1}, {"name": "randomVerticalFlip", "p": 1}]
    for number, array in enumerate(arrays):
        targets = {interpolation: list(map(int, rng.integers(1, 90, 2))) for interpolation in FILTERS}
        views = {
            interpolation: {"transform": [{"name": "resize", "size": size, "interpolation": interpolation}, *turned]}
            for interpolation, size in targets.items()
        }
        channels = array.shape[2]
        options = {**EXACT, "output": "torch", "channels": channels, "image": f"{number}.npy"}
        with shardtool.Loader(location, batch_size=1, views=views, **options) as loader:
            [batch] = list(loader)
        for interpolation, (height, width) in targets.items():
            method = FILTERS[interpolation]
            bands = [Image.fromarray(np.ascontiguousarray(array[..., channel])) for channel in range(channels)]
            # Rows first: Pillow 13 sometimes resizes columns first.
            resized = [band.resize((width, band.height), method).resize((width, height), method) for band in bands]
            expected = np.stack([np.asarray(one) for one in resized])[:, ::-1, ::-1]
            np.testing.assert_array_equal(batch.views[interpolation][0][0].numpy(), expected)


def test_crops_flips_and_padding_are_those_of_8_bit_rgb(tmp_path):
    """The steps are planned once for all formats: the same draws give the same pixels."""
    arrays = [random_array("uint8", (30, 40, 3), seed) for seed in range(8)]
    steps = [
        {"name": "randomCrop", "size": [28, 44], "padding": 3, "padIfNeeded": True, "paddingMode": "reflect"},
        {"name": "randomHorizontalFlip"},
        {"name": "randomVerticalFlip"},
        {"name": "randomRotate90", "p": 1},
        {"name": "centerCrop", "size": 24},
        {"name": "randomErasing", "p": 1, "value": 7},
    ]
    four = [np.concatenate([array, array[..., :1]], -1) for array in arrays]
    dtypes = ("uint8", "uint16", "float32")
    more = {f"{dtype}.npy": [npy(array.astype(dtype)) for array in four] for dtype in dtypes}
    location = written(tmp_path / "shards", npy=list(map(npy, arrays)), **more)
    rgb = images_of(location, transform=steps, image="npy")
    for dtype in dtypes:
        transform = [*steps, {"name": "layout", "layout": "nhwc"}]
        given = images_of(location, channels=4, pixel_dtype=dtype, transform=transform, image=f"{dtype}.npy")
        np.testing.assert_array_equal(given[..., :3], rgb)
        np.testing.assert_array_equal(given[..., 3], rgb[..., 0])


def test_rotation_is_that_of_torchvision(tmp_path):
    array = random_array("float32", (24, 31, 2), 1)
    location = written(tmp_path / "shards", npy=[npy(array)])
    tensor = torch.from_numpy(np.moveaxis(array, -1, 0).copy())
    for interpolation in ("nearest", "bilinear"):
        step = {"name": "randomRotation", "degrees": [30, 30], "interpolation": interpolation, "fill": -5}
        given = images_of(location, channels=2, pixel_dtype="float32", transform=[step])[0]
        mode = F.InterpolationMode(interpolation)
        expected = F.rotate(tensor, 30, interpolation=mode, fill=[-5.0, -5.0]).numpy()
        np.testing.assert_allclose(given, expected, rtol=1e-4, atol=0.5 if interpolation == "bilinear" else 0)


def test_values_are_normalized_by_their_full_scale(tmp_path):
    array = random_array("uint16", (5, 6, 2), 1)
    location = written(tmp_path / "shards", npy=[npy(array)])
    mean, std = [0.2, 0.4], [0.3, 0.1]
    options = {"channels": 2, "pixel_dtype": "uint16"}
    given = images_of(location, **options, transform=[{"name": "normalize", "mean": mean, "std": std}])[0]
    expected = np.moveaxis((array / 65_535 - mean) / std, -1, 0)
    np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-6)
    raw = [{"name": "toDtype", "dtype": "float32"}, {"name": "normalize", "mean": [1000], "std": [500]}]
    given = images_of(location, **options, transform=raw)[0]
    np.testing.assert_allclose(given, np.moveaxis((array - 1000.0) / 500, -1, 0), rtol=1e-5, atol=1e-4)
    half = images_of(location, **options, transform=[{"name": "toDtype", "dtype": "float16", "scale": True}])[0]
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, np.moveaxis(array / 65_535, -1, 0), atol=6e-4)


def test_tensors_and_masks_and_views(tmp_path):
    arrays = [random_array("int16", (20, 20, 5), seed) for seed in range(6)]
    with shardtool.Writer(tmp_path / "shards") as writer:
        for number, array in enumerate(arrays):
            mask = (array[..., 0] > 0).astype(np.uint8)
            writer.add(f"{number}", **{"npy": npy(array), "mask.npy": npy(mask)})
    steps = [{"name": "randomCrop", "size": 12}, {"name": "randomHorizontalFlip"}]
    options = {"shuffle": False, "channels": 5, "pixel_dtype": "int16"}
    with shardtool.Loader(tmp_path / "shards", batch_size=3, transform=steps, masks=["mask.npy"], **options) as loader:
        for batch in loader:
            assert batch.images.dtype == torch.int16
            assert batch.images.shape == (3, 5, 12, 12)
            assert batch.images.is_contiguous(memory_format=torch.channels_last)
            assert torch.equal((batch.images[:, 0] > 0).to(torch.uint8), batch.masks["mask.npy"])
    views = {"large": {"count": 2, "transform": steps}, "small": {"transform": [{"name": "centerCrop", "size": 6}]}}
    with shardtool.Loader(tmp_path / "shards", batch_size=6, views=views, **options) as loader:
        [batch] = list(loader)
    assert [view.shape for view in batch.views["large"]] == [(6, 5, 12, 12)] * 2
    expected = np.stack([np.moveaxis(array[7:13, 7:13], -1, 0) for array in arrays])
    assert np.array_equal(batch.views["small"][0].numpy(), expected)


REFUSED = [
    ({"channels": 4}, "its values are uint16|set channels to 3"),
    ({"channels": 3, "pixel_dtype": "int16"}, "pixel_dtype is int16: set it to uint16"),
    ({"pixel_dtype": "uint16", "transform": [{"name": "colorJitter", "brightness": 0.5}]}, "color_jitter"),
    ({"channels": 2, "transform": [{"name": "normalize", "mean": [1, 2, 3], "std": [1]}]}, "3 values as mean"),
    ({"channels": 2, "transform": [{"name": "pad", "padding": 1, "fill": 300}]}, "cannot hold"),
    ({"pixel_dtype": "uint16", "transform": [{"name": "toDtype", "dtype": "uint8"}]}, "without loss"),
    ({"channels": 0}, "channels"),
    ({"channels": "native"}, "Use 1 for gray, 3 for RGB"),
    ({"background": [1, 2]}, "background"),
]


def test_options_that_do_not_match_the_images_are_rejected_by_name(tmp_path):
    location = written(tmp_path / "shards", npy=[npy(random_array("uint16", (8, 8, 3), 1))])
    for options, message in REFUSED:
        with pytest.raises(shardtool.ShardtoolError, match=message):
            images_of(location, **options)


def test_a_mixture_of_arrays_of_other_channels_or_types_is_rejected_by_name(tmp_path):
    def dataset(name, dtype, channels):
        arrays = [npy(random_array(dtype, (8, 8, channels), seed)) for seed in range(2)]
        return {"dataset": written(tmp_path / name, npy=arrays)}

    four, five, words = dataset("four", "uint8", 4), dataset("five", "uint8", 5), dataset("words", "uint16", 4)
    photos = {"dataset": written(tmp_path / "photos", png=[png("RGB", random_array("uint8", (9, 8, 3), 1))])}
    resize = [{"name": "resize", "size": [8, 8]}]
    options = {"batch_size": 2, "workers": 1, "channels": 4, "transform": resize, "fields": []}

    def first_batch(*parts, **more):
        with shardtool.Loader(shardtool.Mixture(parts), **options, **more) as loader:
            return next(iter(loader))

    other = "four are arrays of 4 channels of uint8, and those of .*five of 5 channels of uint8"
    with pytest.raises(shardtool.OptionError, match=other):
        first_batch(photos, four, five)
    other = "four are arrays of 4 channels of uint8, and .*words of 4 channels of uint16.*pixel_dtype to float32"
    with pytest.raises(shardtool.OptionError, match=other):
        first_batch(four, words)
    assert first_batch(four, words, pixel_dtype="float32").images.shape == (2, 4, 8, 8)
    assert first_batch(photos, four).images.shape == (2, 4, 8, 8)


def test_a_state_of_other_pixels_is_rejected(tmp_path):
    location = written(tmp_path / "shards", npy=[npy(random_array("uint16", (8, 8, 3), seed)) for seed in range(6)])
    options = {"pixel_dtype": "uint16", "batch_size": 2, "output": "numpy"}
    with shardtool.Loader(location, **options) as loader:
        whole = [batch.images.copy() for batch in loader]
    with shardtool.Loader(location, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with shardtool.Loader(location, **options) as loader:
        loader.load_state_dict(state)
        for given, expected in zip(loader, whole[1:]):
            np.testing.assert_array_equal(given.images, expected)
    loader = shardtool.Loader(location, **{**options, "pixel_dtype": "float32"})
    with loader, pytest.raises(shardtool.StateError, match="3 channels of uint16"):
        loader.load_state_dict(state)
        list(loader)


def test_damaged_tiffs_are_bad_samples(tmp_path):
    """Each is read, or rejected by name, and the loop continues."""
    rng = np.random.default_rng(5)
    whole = [tiff(random_array("uint16", (20, 20, 1), 1), compressed=one) for one in (False, True)]
    written_samples = 0
    with shardtool.Writer(tmp_path / "shards") as writer:
        for number in range(100):
            damaged = bytearray(whole[number % 2])
            for at in rng.integers(0, len(damaged), 3):
                damaged[at] = rng.integers(0, 256)
            with contextlib.suppress(shardtool.ShardtoolError):
                length = rng.integers(8, len(damaged) + 1) if number % 5 == 0 else len(damaged)
                writer.add(f"{number:04}", tif=bytes(damaged[:length]))
                written_samples += 1
    steps = [{"name": "resize", "size": [8, 8]}]
    options = {"channels": 1, "pixel_dtype": "uint16", "on_bad": "skip", "transform": steps}
    with shardtool.Loader(tmp_path / "shards", batch_size=100, **{**EXACT, **options}) as loader:
        [batch] = list(loader)
    assert len(batch.valid) == written_samples
    assert 0 < batch.valid.sum() < written_samples
