import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import shardtool


class Ranges(SimpleHTTPRequestHandler):
    """Serves the files below a folder, with range requests."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        try:
            data = Path(self.translate_path(self.path)).read_bytes()
        except OSError:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(len(data), int(last) + 1) if first and last else len(data)
        self.server.asked.append(self.path)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        self.wfile.write(data[begin:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def served(photos):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(photos.parent)))
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server, f"http://127.0.0.1:{server.server_port}/{photos.name}"
    server.shutdown()


def epoch(location, **options):
    loader = shardtool.Loader(
        location, batch_size=16, transform="train224", seed=5, workers=1, output="numpy", with_keys=True, **options
    )
    with loader:
        return [(images.copy(), list(keys)) for images, _, keys in loader]


def test_a_location_gives_the_batches_of_the_folder_and_the_cache_answers_the_second_time(photos, served, tmp_path):
    server, location = served
    expected = epoch(photos)
    for _ in range(2):
        server.asked.clear()
        found = epoch(location, cache=tmp_path / "cache", cache_size="100MB", storage={"unsigned": True})
        assert [keys for _, keys in found] == [keys for _, keys in expected]
        assert all(np.array_equal(a, b) for (a, _), (b, _) in zip(found, expected))
    assert not [path for path in server.asked if path.endswith(".tar")]


def test_a_location_without_a_dataset_is_reported(served):
    with pytest.raises(shardtool.ShardtoolError, match=r"has no dataset\.json"):
        epoch(served[1] + "/none")
    with pytest.raises(TypeError, match="storage has no option 'endpoint'"):
        epoch(served[1], storage={"endpoint": "x"})
