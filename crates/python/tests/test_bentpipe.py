"""The package against itself: files and dictionaries, steps, tables, errors, a cluster."""

import os
import signal
import threading
import tomllib
from pathlib import Path

import bentpipe
import pytest
from bentpipe import _bentpipe

CASE = {
    "duration": 8,
    "replications": 2,
    "links": {
        "a-hub": "rate 100mbit",
        "hub-terminal": {"profile": "geo", "rate": "2mbit"},
        "terminal-b": "rate 100mbit",
    },
    "traffic": {"file": {"kind": "bulk", "from": "a", "to": "b"}},
    "sweep": {"gateways.kind": ["none", "pair"], "links.hub-terminal.loss": ["0%", "1%"]},
    "record": {"series": "500ms", "capture": ["hub-terminal"], "links": ["hub-terminal"]},
    "expect": [
        {"measure": "file.goodput", "at": {"gateways.kind": "pair", "links.hub-terminal.loss": "0%"}, "above": 1},
    ],
}
SECTIONS = """duration = 8
replications = 4
[links]
a-b = { rate = "2mbit", delay = "300ms" }
[traffic.file]
kind = "bulk"
from = "a"
to = "b"
[sweep]
links.a-b.loss = ["0%", "0.1%", "0.2%", "0.3%", "0.5%", "1%", "2%", "3%"]
traffic.file.tcp = ["linux-cubic", "bbr", "sack", "newreno"]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return bentpipe.run(CASE, name="small", out=tmp_path_factory.mktemp("out"))


def test_version_is_that_of_the_workspace():
    manifest = Path(__file__).parents[3] / "Cargo.toml"
    version = tomllib.loads(manifest.read_text())["workspace"]["package"]["version"]
    assert bentpipe.__version__ == version


def test_tables_have_types_and_units_in_both_engines(results):
    assert results.met
    cells = results.cells
    assert len(cells) == 4 and len(results.runs) == 8
    assert cells.attrs["units"]["file.goodput (Mbit/s)"] == "Mbit/s"
    assert list(cells["gateways.kind"]) == ["none", "none", "pair", "pair"]
    polars = results.table("cells", "polars")
    assert polars["file.goodput (Mbit/s)"].to_list() == list(cells["file.goodput (Mbit/s)"])
    assert str(polars["point"].dtype) == "Int64"
    with pytest.raises(ValueError, match="expected pandas or polars"):
        results.table("cells", "excel")
    again = bentpipe.Results(results.folder)
    assert again.met and again.runs.equals(results.runs)


def test_parquet_has_values_and_units(results, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    paths = results.to_parquet(tmp_path)
    assert len(paths) == len(results.package["resources"]) > 3
    table = pyarrow.read_table(tmp_path / "runs.parquet")
    assert table.field("file.goodput (Mbit/s)").metadata[b"unit"] == b"Mbit/s"
    assert table["file.goodput (Mbit/s)"].to_pylist() == list(results.runs["file.goodput (Mbit/s)"])


def test_steps_give_the_values_and_series_of_the_run(results):
    simulation = bentpipe.Simulation(CASE, point=4, replication=1)
    while simulation.now < simulation.end:
        simulation.step(0.7)
    found = simulation.measures().set_index("name")["value"]
    row = results.runs.query("point == 4 and replication == 1").iloc[0]
    assert found["file.goodput"] == row["file.goodput (Mbit/s)"]
    simulation = bentpipe.Simulation(CASE, point=4)
    assert simulation.point == {"gateways.kind": "pair", "links.hub-terminal.loss": "1%"}
    simulation.run()
    received = "file received (bytes)"
    assert list(simulation.series()[received]) == list(results.series(4)[received])


def test_captures_are_tables(results, tmp_path):
    packets = results.capture("hub-terminal", 1)
    tcp = packets[packets.protocol == "TCP"]
    assert len(tcp) == len(packets) > 100 and packets.seconds.is_monotonic_increasing
    assert tcp.tcp_flags.iloc[0] == "S" and set(packets.direction) == {"in", "out"}
    assert set(results.capture("hub-terminal", 3).protocol) == {"UDP"}
    simulation = bentpipe.Simulation(CASE)
    simulation.capture("hub-terminal", tmp_path / "new" / "one.pcapng")
    simulation.run()
    assert bentpipe.read_capture(tmp_path / "new" / "one.pcapng").equals(packets)


def test_plot_has_a_line_for_each_gateway(results):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = results.plot("file.goodput")
    assert axes.get_xlabel() == "links.hub-terminal.loss (%)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["none", "pair"]
    with pytest.raises(KeyError, match="file.godput"):
        results.plot("file.godput")


WRONG = [
    ("loss =", "los =", 4, "links.a-b.los", "nearest key is `loss`"),
    ("300ms", "300 m", 4, "links.a-b.delay", "expected"),
    ('"bulk"', '"bulky"', 6, "traffic.file.kind", 'found "bulky", expected one of bulk'),
    ('from = "a"', 'from = "c"', 7, "traffic.file.from", "expected a node of a link: a, b"),
    ("duration = 8", "duration = -8", 1, "duration", "found"),
    ("duration = 8", "", 1, "duration", "found nothing"),
    ("replications = 4", 'replications = "4"', 2, "replications", "found string"),
    ('to = "b"', 'to = "b"\nbytes = "1 apple"', 9, "traffic.file.bytes", "expected a number of bytes"),
    ('to = "b"', 'to = "b"\nrate = "1mbit"', 9, "traffic.file.rate", "expected it with"),
    ("[links]", "[links", 3, "", "found `[links`"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "message"), WRONG)
def test_errors_have_file_line_key_found_and_expected(tmp_path, old, new, line, key, message):
    text = SECTIONS.split("[sweep]")[0].replace('"300ms" }', '"300ms", loss = "1%" }')
    assert old in text
    path = tmp_path / "wrong.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(bentpipe.ScenarioError) as caught:
        bentpipe.run(path, out=tmp_path)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(path), line, key)
    assert message in error.message and str(error).startswith(f"{path}:{line}: ")


def test_dictionaries_have_errors_too(tmp_path):
    with pytest.raises(bentpipe.ScenarioError, match="duration: found") as caught:
        bentpipe.run({**CASE, "duration": "long"}, name="mine", out=tmp_path)
    assert caught.value.file == "<mine>" and caught.value.key == "duration"
    with pytest.raises(bentpipe.LabError, match="point: found 9, expected 1 to 4"):
        bentpipe.Simulation(CASE, point=9)


@pytest.fixture
def soon():
    """A thread interrupts the process after a second, which it cannot while a call holds the lock."""
    timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    yield
    timer.cancel()


# Days of computation.
ENDLESS = {**CASE, "replications": 1, "sweep": {"duration": [1, 1e9]}, "record": {}, "expect": []}


def test_an_interrupt_stops_a_run_and_keeps_finished_jobs(tmp_path, soon):
    with pytest.raises(KeyboardInterrupt):
        bentpipe.run(ENDLESS, out=tmp_path, jobs=2)
    (store,) = (tmp_path / "scenario" / "store").glob("*.jsonl")
    assert sum('"file.goodput"' in line for line in store.read_text().splitlines()) == 1


def test_an_interrupt_stops_a_simulation_that_can_go_on(soon):
    simulation = bentpipe.Simulation(ENDLESS, point=2)
    with pytest.raises(KeyboardInterrupt):
        simulation.run()
    at = simulation.now
    assert 0 < at < simulation.end
    assert simulation.step(1) == pytest.approx(at + 1)


def test_a_panic_is_an_exception():
    if not hasattr(_bentpipe, "panic"):
        pytest.skip("built without debug assertions")
    with pytest.raises(bentpipe.LabError, match="panicked: on purpose"):
        _bentpipe.panic()


def test_a_lost_worker_does_not_change_a_sweep(tmp_path):
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "sweep.toml"
    path.write_text(SECTIONS)
    alone = bentpipe.run(path, out=tmp_path / "alone")
    lost = []

    def lose(pids, future):
        if not lost:
            lost.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            submit = client.submit
            def watched(*arguments, **options):
                future = submit(*arguments, **options)
                future.add_done_callback(lambda done: lose(pids, done))
                return future

            client.submit = watched
            together = bentpipe.distribute(path, client, parts=16, out=tmp_path / "together")
    assert lost, "a worker was killed after the first task"
    for name in ["runs.csv", "cells.csv", "run.json", "datapackage.json", "summary.md"]:
        assert (together.folder / name).read_bytes() == (alone.folder / name).read_bytes(), name
