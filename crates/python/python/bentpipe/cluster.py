"""Sweeps on a cluster of dask.distributed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import running
from .results import Results

if TYPE_CHECKING:
    from distributed import Client


def _part(text: str, files: dict[str, bytes], name: str, shard: tuple[int, int], options: dict[str, Any]) -> dict[str, bytes]:
    """Runs one part in a folder of its own; returns the files of its store."""
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            path = Path(folder) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        scenario = Path(folder) / f"{name}.toml"
        scenario.write_text(text)
        out = Path(folder) / "out"
        running.run(scenario, out=out, shard=shard, **{"jobs": 1, **options})
        store = out / name / "store"
        return {path.name: path.read_bytes() for path in store.glob("*.jsonl")}


def distribute(
    scenario: str | os.PathLike[str], client: Client, *, parts: int = 64,
    out: str | os.PathLike[str] = "bentpipe-lab", files: list[str] | None = None, **options: Any,
) -> Results:
    """Runs a scenario file in `parts` tasks of `client`, merges and evaluates the results.

    Workers need this package and no common file system; `files` names the traces that the scenario
    uses, relative to it. A task of a worker that is lost runs on another one. The results are those
    of `run` with the same options.
    """
    path = Path(scenario)
    carried = {file: (path.parent / file).read_bytes() for file in files or []}
    futures = [
        client.submit(_part, path.read_text(), carried, path.stem, (part, parts), options, pure=False)
        for part in range(1, parts + 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number, store in enumerate(client.gather(futures)):
            for name, content in store.items():
                place = Path(folder) / str(number) / path.stem / "store" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        running.merge(sorted(Path(folder).iterdir()), out)
    results = running.run(path, out=out, **options)
    assert results is not None
    return results
