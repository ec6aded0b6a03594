"""How long loops wait, and why: report(), metrics() and what Prometheus reads."""

import contextlib
import gc
import http.server
import json
import os
import queue
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import shardtool
from shardtool.metrics.address import metrics_address
from shardtool.metrics.otlp import otlp_target
from shardtool.metrics.server import METRICS
from shardtool.metrics.waits import CAUSES, Waits, split

EXPOSITION = Path("packages/reader/src/loader/metrics/exposition.ts")


def loader_of(location, **options):
    return shardtool.Loader(location, **{"batch_size": 32, "output": "numpy", **options})


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def waits():
    waits = Waits()
    waits.now = Clock()
    return waits


def totals(**wait_ms):
    waited = dict.fromkeys(("start", "storage", "order", "decode", "transform", "delivery"), 0.0)
    counts = dict.fromkeys(("bad", "dropped", "requests", "fetchedBytes", "retries", "cacheHits", "cacheHitBytes"), 0)
    return {"waitMsBy": {**waited, **wait_ms}, **counts, "readyBatches": 2}


def batch(waits, epoch=0, waited=0.0, worked=0.0, **wait_ms):
    waits.now.now += worked
    with waits.waiting(1) as wait:
        waits.now.now += waited
        if wait_ms:
            waits.take(totals(**wait_ms))
        wait.delivered(epoch, 10)


def test_causes_add_up_to_the_wait():
    reader = {"start": 0.0, "storage": 2.0, "order": 0.0, "decode": 1.0, "transform": 1.0, "delivery": 0.0}
    waits = split(10.0, 1.0, 3.0, reader)
    assert waits == {**reader, "start": 1.0, "python_transform": 3.0, "delivery": 2.0}
    # The reader cannot have waited longer than the loop: its earlier work is not exposed.
    assert split(2.0, 0.0, 0.0, reader) == {
        **dict.fromkeys(CAUSES, 0.0),
        "storage": 1.0,
        "decode": 0.5,
        "transform": 0.5,
    }
    assert sum(split(0.5, 1.0, 3.0, reader).values()) == 0.5


def test_the_cause_of_a_wait_is_that_of_the_reader(waits):
    batch(waits, waited=4.0, storage=3000.0)
    batch(waits, waited=1.0, worked=5.0, storage=3000.0, decode=1000.0)
    epoch = waits.report()["epoch"]
    assert (epoch["epoch"], epoch["batches"], epoch["samples"]) == (0, 2, 20)
    assert epoch["wait_ms_by"]["storage"] == 3000.0
    assert epoch["wait_ms_by"]["decode"] == 1000.0
    assert epoch["wait_ms_by"]["delivery"] == 1000.0
    assert (epoch["wait_ms"], epoch["consumer_ms"], epoch["wait_share"], epoch["cause"]) == (5000, 5000, 0.5, "storage")


def test_another_reader_counts_from_the_start(waits):
    batch(waits, waited=4.0, storage=3000.0)
    waits.reader_opens()
    batch(waits, waited=4.0, storage=1000.0)
    assert waits.report()["epoch"]["wait_ms_by"]["storage"] == 4000.0


def test_the_window_is_the_last_minute_and_epochs_are_apart(waits):
    batch(waits, epoch=0, waited=1.0)
    batch(waits, epoch=1, waited=1.0, worked=58.0)
    batch(waits, epoch=1, waited=2.0, worked=10.0)
    report = waits.report()
    assert report["previous_epoch"]["batches"] == 1
    assert report["epoch"]["batches"] == 2
    assert report["window"]["batches"] == 2
    waits.now.now += 1000
    assert waits.report()["window"]["batches"] == 0
    assert waits.flat("x/")["x/batches"] == 3


def test_time_between_loops_is_no_work_of_the_consumer(waits):
    batch(waits, waited=1.0)
    waits.now.now += 500
    with waits.waiting(2) as wait:
        wait.delivered(1, 10)
    assert waits.report()["epoch"]["consumer_ms"] == 0


def test_a_loop_reports_its_waits_by_cause(small):
    with loader_of(small) as loader:
        list(loader)
        list(loader)
        wait = loader.report()["wait"]
        metrics = loader.metrics()
        later = loader.metrics(prefix="val/")
    assert set(wait["epoch"]["wait_ms_by"]) == set(CAUSES)
    assert (wait["epoch"]["epoch"], wait["epoch"]["batches"], wait["epoch"]["samples"]) == (1, 7, 200)
    assert (wait["previous_epoch"]["epoch"], wait["previous_epoch"]["samples"]) == (0, 200)
    assert wait["previous_epoch"]["wait_ms_by"]["start"] > 0
    assert sum(wait["epoch"]["wait_ms_by"].values()) == pytest.approx(wait["epoch"]["wait_ms"])
    assert (metrics["shardtool/batches"], metrics["shardtool/samples"], metrics["shardtool/epoch"]) == (14, 400, 1)
    assert all(isinstance(value, (int, float)) for value in metrics.values())
    assert later["val/batches"] == 14


def test_a_slow_python_transform_is_the_cause(small):
    def slow(image):
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            pass
        return image

    with loader_of(small, batch_size=20, python_transform=slow, python_workers=1) as loader:
        assert len(list(loader)) == 10
        by = loader.report()["wait"]["epoch"]["wait_ms_by"]
        python_ms = loader.report()["python_ms"]
    # The loop does nothing but wait: the function took 2 s, minus its work while the loop waited for the reader.
    assert by["python_transform"] >= python_ms > 0


def test_a_state_that_is_loaded_does_not_disturb_the_totals(small):
    with loader_of(small) as loader:
        batches = iter(loader)
        next(batches)
        next(batches)
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert len(list(loader)) == 5
        assert loader.metrics()["shardtool/batches"] == 7
        assert all(value >= 0 for value in loader.metrics().values())


def test_prometheus_reads_all_loaders_of_the_process_until_they_are_closed(small):
    train, other = (loader_of(small, metrics={"port": 0}) for _ in range(2))
    with train, other:
        assert train.metrics_url is None
        list(train)
        list(other)
        url = train.metrics_url
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", url)
        assert other.metrics_url == url
        with urllib.request.urlopen(url) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            text = answer.read().decode()
        assert len(re.findall(r'^shardtool_loader_batches_total\{rank="0",loader="\d+"\} 7$', text, re.MULTILINE)) == 2
        assert re.search(r'^shardtool_loader_wait_seconds_total\{rank="0",loader="\d+",cause="decode"\} ', text, re.M)
        for line in text.splitlines():
            assert re.fullmatch(r"# (HELP|TYPE) \S+ .+|shardtool_\w+\{[^{}]+\} -?[0-9.]+(e-?\d+)?", line), line
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(url.replace("/metrics", "/"))
        train.close()
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        assert len(re.findall(r"^shardtool_loader_batches_total\{", text, re.MULTILINE)) == 1
    assert other.metrics_url is None


def test_a_loader_that_is_dropped_without_close_frees_its_port_and_sends_no_more_metrics(small, monkeypatch):
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
        loader = loader_of(small, metrics={"port": 0})
        list(loader)
        url = loader.metrics_url
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("shardtool metrics")]
        assert len(threads) == 2
        del loader
        gc.collect()
        for thread in threads:
            thread.join()
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url)
        with loader_of(small, metrics={"port": 0}) as loader:
            list(loader)
            with urllib.request.urlopen(loader.metrics_url) as answer:
                assert answer.status == 200


def test_a_port_that_is_taken_is_an_error_of_the_option_and_a_warning_of_the_variable(small, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = f"cannot be served on 127.0.0.1:{port} .another process"
        with loader_of(small, metrics={"port": port}) as loader, pytest.raises(shardtool.OptionError, match=error):
            next(iter(loader))
        monkeypatch.setenv("SHARDTOOL_METRICS", f":{port}")
        with loader_of(small) as loader, pytest.warns(UserWarning, match="This process serves no metrics"):
            assert len(list(loader)) == 7
        with loader_of(small, metrics=False) as loader:
            assert len(list(loader)) == 7


@pytest.mark.parametrize("wrong", [9464, True, {}, {"port": "9464"}, {"port": 70000}, {"port": 1, "hots": "x"}])
def test_an_invalid_option_is_rejected(small, wrong):
    with pytest.raises(shardtool.OptionError, match=r'metrics must be \{"port": 9464\}'):
        loader_of(small, metrics=wrong)


def test_the_variable_has_the_same_rules_as_in_node():
    assert metrics_address(None, {}) is None
    assert metrics_address(None, {"SHARDTOOL_METRICS": ":9464", "LOCAL_RANK": "2"})[:2] == ("127.0.0.1", 9466)
    assert metrics_address({"port": 9464}, {"SLURM_LOCALID": "1"})[:2] == ("127.0.0.1", 9465)
    assert metrics_address(None, {"SHARDTOOL_METRICS": "[::1]:9000"})[:2] == ("::1", 9000)
    for wrong in ("yes", ":99999", "http://host:1", ":-1"):
        with pytest.raises(shardtool.OptionError, match="SHARDTOOL_METRICS is"):
            metrics_address(None, {"SHARDTOOL_METRICS": wrong})


def test_names_and_texts_are_those_of_the_reader():
    node = re.findall(
        r"name: '(\w+)',\s+type: '(\w+)',\s+help: '([^']+)'", (Path(__file__).parents[2] / EXPOSITION).read_text()
    )
    assert len(node) > 10
    assert node == [metric[:3] for metric in METRICS]


class Collector(http.server.ThreadingHTTPServer):
    """Receives metrics like a collector, and responds with ``status``."""

    def __init__(self, status=200):
        self.status = status
        self.requests = queue.Queue()
        super().__init__(("127.0.0.1", 0), CollectorHandler)

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class CollectorHandler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.put((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


def points(body, name):
    (metric,) = (m for m in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"] if m["name"] == name)
    return metric.get("sum", metric.get("gauge"))["dataPoints"]


def test_metrics_are_sent_to_the_collector_of_the_standard_variables(small, monkeypatch):
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "training")
        with loader_of(small) as loader:
            list(loader)
        assert collector.requests.empty()
        with loader_of(small, metrics="otlp") as loader:
            list(loader)
            assert loader.metrics_url is None
        path, headers, body = collector.requests.get_nowait()
        assert (path, headers["authorization"], headers["content-type"]) == (
            "/v1/metrics",
            "Bearer x",
            "application/json",
        )
        attributes = {a["key"]: a["value"] for a in body["resourceMetrics"][0]["resource"]["attributes"]}
        assert attributes["service.name"] == {"stringValue": "training"}
        assert attributes["process.pid"] == {"intValue": str(os.getpid())}
        assert [point["asDouble"] for point in points(body, "shardtool_loader_samples_total")] == [200]
        waits = points(body, "shardtool_loader_wait_seconds_total")
        assert [point["attributes"][2]["value"]["stringValue"] for point in waits] == list(CAUSES)
        assert collector.requests.empty()


def test_metrics_are_sent_again_and_again_while_the_loader_is_open(small, monkeypatch):
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", collector.url + "/own?x=1")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
        with loader_of(small, metrics={"port": 0}) as loader:
            list(loader)
            assert loader.metrics_url is not None
            assert {collector.requests.get()[0] for _ in range(3)} == {"/own?x=1"}


def test_a_collector_that_fails_is_a_warning(small, monkeypatch):
    with Collector(status=503) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        is_named = pytest.warns(UserWarning, match=r"could not be sent to .*/v1/metrics \(status 503\)")
        with is_named, loader_of(small, metrics="otlp") as loader:
            assert len(list(loader)) == 7


@contextlib.contextmanager
def strange_collector(monkeypatch, answer):
    """A collector that responds with ``answer(connection)``, until the connection is closed."""

    def serve(listener):
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
        yield
        thread.join()


def test_a_loader_can_be_closed_while_its_collector_answers_byte_by_byte(small, monkeypatch):
    def drip(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n")
        for _ in range(2000):  # Each byte is in time, but the last one is many times too late.
            threading.Event().wait(0.01)
            connection.sendall(b" ")

    is_named = pytest.warns(UserWarning, match="no answer in time")
    with strange_collector(monkeypatch, drip), is_named, loader_of(small, metrics="otlp") as loader:
        list(loader)


@pytest.mark.filterwarnings("ignore:Metrics could not be sent")  # If the first 64 KiB take longer than the timeout.
def test_a_loader_can_be_closed_while_its_collector_sends_without_end(small, monkeypatch):
    def flood(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b" " * 65536)

    with strange_collector(monkeypatch, flood), loader_of(small, metrics="otlp") as loader:
        list(loader)


def test_the_variables_of_otlp_have_the_same_rules_as_in_node():
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert otlp_target(None, endpoint) is None
    assert otlp_target(False, {**endpoint, "SHARDTOOL_METRICS": "otlp"}) is None
    assert otlp_target(None, {"SHARDTOOL_METRICS": ":9464"}) is None
    assert otlp_target("otlp", {**endpoint, "OTEL_SDK_DISABLED": "true"}) is None
    target = otlp_target(
        None,
        {
            "SHARDTOOL_METRICS": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector/otlp/",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20a%3Db%0A, x-team = vision ,",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,job=42",
        },
    )
    assert target == (
        "https://collector/otlp/v1/metrics",
        (("authorization", "Bearer a=b"), ("x-team", "vision")),
        60,
        2.5,
        (("job", "42"), ("service.name", "other")),
    )


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({}, "OTEL_EXPORTER_OTLP_ENDPOINT is not set"),
        ({"ENDPOINT": "collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT is not the address"),
        ({"ENDPOINT": "http://user:secret@collector"}, "credentials to OTEL_EXPORTER_OTLP_HEADERS"),
        ({"ENDPOINT": "http://c", "PROTOCOL": "grpc"}, 'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"'),
        ({"ENDPOINT": "http://c", "HEADERS": "secret"}, "OTEL_EXPORTER_OTLP_HEADERS cannot be read"),
        ({"ENDPOINT": "http://c", "HEADERS": "a=secret%0Asecret"}, "HEADERS has a header with a character that HTTP"),
        ({"ENDPOINT": "http://c", "HEADERS": "a=secret%E2%82%AC"}, "HEADERS has a header with a character that HTTP"),
        ({"ENDPOINT": "http://c", "HEADERS": "a secret=b"}, "HEADERS has a header with a character that HTTP"),
        ({"ENDPOINT": "http://c", "HEADERS": "a=secret%"}, "OTEL_EXPORTER_OTLP_HEADERS cannot be read"),
        ({"ENDPOINT": "http://c", "TIMEOUT": "1 s"}, 'OTEL_EXPORTER_OTLP_TIMEOUT is "1 s"'),
    ],
)
def test_unusable_otlp_variables_are_rejected_without_showing_their_secrets(variables, sentence):
    environment = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()}
    with pytest.raises(shardtool.OptionError, match=sentence) as refused:
        otlp_target("otlp", environment)
    assert "secret" not in str(refused.value)
