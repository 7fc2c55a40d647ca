"""Runs of scenarios."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas

from . import _bentpipe
from .results import Results

Scenario = str | os.PathLike[str] | Mapping[str, Any]


def _place(scenario: Scenario, name: str) -> str | tuple[str, str, str]:
    if isinstance(scenario, Mapping):
        return name, os.getcwd(), _bentpipe.toml_of(json.dumps(scenario))
    return os.fspath(scenario)


def _words(set: Mapping[str, Any] | None) -> list[str]:
    # JSON of numbers, texts and lists is TOML as well.
    return [f"{key}={json.dumps(value)}" for key, value in (set or {}).items()]


def _settings(
    out: str | os.PathLike[str] = "bentpipe-lab",
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    quick: bool = False,
    shard: tuple[int, int] | None = None,
    jobs: int | None = None,
) -> dict[str, Any]:
    return {
        "out": os.fspath(out), "set": _words(set), "seed": seed, "replications": replications,
        "quick": quick, "shard": shard, "jobs": jobs,
    }


def run(scenario: Scenario, *, name: str = "scenario", **options: Any) -> Results | None:
    """Runs a scenario, a file or a dictionary with the same keys, and evaluates it.

    Options: `out` (folder, "bentpipe-lab"), `set` (keys to replace), `seed`, `replications`,
    `quick`, `shard` (part, parts), `jobs` (threads). A dictionary's results have the name `name`.
    Returns None if jobs of other shards are missing. Stored results are not computed again.
    """
    done = _bentpipe.run(_place(scenario, name), _settings(**options))
    return None if done is None else Results(done[0], met=done[1])


def merge(parts: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str]) -> int:
    """Merges the stores of other output folders into `out`; returns the number of new results."""
    return _bentpipe.merge([os.fspath(part) for part in parts], os.fspath(out))


class Simulation:
    """One replication of one point of a scenario, in steps of simulated time.

    `point` counts from 1 as in runs.csv, `replication` from 0; `series` is the interval of time
    series in seconds. The values do not depend on the steps. An interrupt stops a step, and the
    simulation can go on. Threads can share one; their calls wait for one another.
    """

    def __init__(
        self, scenario: Scenario, *, name: str = "scenario", set: Mapping[str, Any] | None = None,
        point: int = 1, replication: int = 0, seed: int | None = None, series: float | None = None,
    ) -> None:
        chosen = {
            "set": _words(set), "point": point, "replication": replication, "seed": seed,
            "series": series,
        }
        self._native = _bentpipe.Simulation(_place(scenario, name), chosen)

    @property
    def now(self) -> float:
        """The simulated time in seconds."""
        return self._native.now

    @property
    def end(self) -> float:
        """The duration in seconds."""
        return self._native.end

    @property
    def point(self) -> dict[str, str]:
        """The swept keys with their values."""
        return dict(self._native.point)

    def step(self, seconds: float) -> float:
        """Runs for so long, not beyond the end; returns the time."""
        self._native.run_until(self.now + seconds)
        return self.now

    def run(self) -> float:
        """Runs to the end; returns the time."""
        return self.step(self.end - self.now)

    def capture(self, link: str, path: str | os.PathLike[str]) -> None:
        """Writes packets of a link to a pcapng file from now on; complete at the end of the run."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._native.capture(link, os.fspath(path))

    def close(self) -> None:
        """Completes captures before the end of the run."""
        self._native.finish()

    def measures(self) -> pandas.DataFrame:
        """The measures up to now: name, unit, value."""
        return pandas.DataFrame(self._native.measures(), columns=["name", "unit", "value"])

    def series(self) -> pandas.DataFrame:
        """The time series up to now: a row for each time in seconds, a column for each variable."""
        columns = {
            f"{name} ({unit})" if unit else name: pandas.Series(values, times, dtype=float)
            for name, unit, times, values in self._native.series()
        }
        frame = pandas.DataFrame(columns)
        frame.index.name = "seconds"
        return frame
