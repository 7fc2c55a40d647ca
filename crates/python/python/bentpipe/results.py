"""Results of a run, as `bentpipe-lab run` writes them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas

from .capture import read_capture

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Results:
    """The folder of a run. Tables are read on each access; `met` is whether all criteria are met."""

    def __init__(self, folder: str | os.PathLike[str], met: bool | None = None) -> None:
        self.folder = Path(folder)
        self.package: dict[str, Any] = json.loads((self.folder / "datapackage.json").read_text())
        self.met = bool((self.expect["verdict"] == "agrees").all()) if met is None else met

    def __repr__(self) -> str:
        return f"Results({str(self.folder)!r}, met={self.met})"

    def _fields(self, path: str) -> list[dict[str, Any]]:
        for resource in self.package["resources"]:
            if resource["path"] == path:
                fields: list[dict[str, Any]] = resource["schema"]["fields"]
                return fields
        known = ", ".join(resource["path"] for resource in self.package["resources"])
        raise KeyError(f"found {path}, expected one of {known}")

    def units(self, table: str = "runs") -> dict[str, str]:
        """The unit of each column that has one."""
        return {field["name"]: field["unit"] for field in self._fields(f"{table}.csv") if "unit" in field}

    def table(self, name: str, engine: str = "pandas") -> Any:
        """A table, such as "cells", "runs", "expect" or "series/1/hub-rate", for pandas or polars."""
        fields = self._fields(f"{name}.csv")
        if engine == "polars":
            import polars

            kinds: dict[str, Any] = {"integer": polars.Int64, "number": polars.Float64, "string": polars.String}
            schema = {field["name"]: kinds[field["type"]] for field in fields}
            return polars.read_csv(self.folder / f"{name}.csv", schema=schema)
        if engine != "pandas":
            raise ValueError(f"engine: found {engine!r}, expected pandas or polars")
        types = {"integer": "int64", "number": "float64", "string": "str"}
        frame = pandas.read_csv(
            self.folder / f"{name}.csv",
            dtype={field["name"]: types[field["type"]] for field in fields},
            keep_default_na=False, na_values={field["name"]: [""] for field in fields if field["type"] == "number"},
        )
        frame.attrs["units"] = self.units(name)
        return frame

    @property
    def cells(self) -> pandas.DataFrame:
        """Means with intervals, a row for each point."""
        frame: pandas.DataFrame = self.table("cells")
        return frame

    @property
    def runs(self) -> pandas.DataFrame:
        """Values, a row for each replication of each point."""
        frame: pandas.DataFrame = self.table("runs")
        return frame

    @property
    def expect(self) -> pandas.DataFrame:
        """The criteria."""
        frame: pandas.DataFrame = self.table("expect")
        return frame

    def series(self, point: int = 1) -> pandas.DataFrame:
        """All time series of a point: a row for each time, a column for each variable."""
        at = f"series/{point}/"
        names = [resource["path"][:-4] for resource in self.package["resources"] if resource["path"].startswith(at)]
        if not names:
            raise KeyError(f"found no series of point {point}, expected record.series in the scenario")
        tables = [self.table(name).set_index("seconds") for name in names]
        return pandas.concat(tables, axis=1).sort_index()

    def capture(self, link: str, point: int = 1) -> pandas.DataFrame:
        """The packets of a link in `record.capture`."""
        return read_capture(self.folder / "capture" / str(point) / f"{link}.pcapng")

    def to_parquet(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes each table as Parquet; the unit of a column is in the metadata of its field."""
        import pyarrow
        import pyarrow.parquet

        written = []
        for resource in self.package["resources"]:
            name = resource["path"].removesuffix(".csv")
            units = self.units(name)
            table = pyarrow.Table.from_pandas(self.table(name), preserve_index=False)
            fields = [
                field.with_metadata({"unit": units[field.name]}) if field.name in units else field
                for field in table.schema
            ]
            path = Path(folder) / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(table.cast(pyarrow.schema(fields)), path)
            written.append(path)
        return written

    def plot(self, measure: str, x: str | None = None, ax: Axes | None = None) -> Axes:
        """Means with 95 % intervals over the swept key `x`, a line for each value of the others."""
        import matplotlib.pyplot as plt

        cells = self.cells
        columns = [column for column in cells if re.fullmatch(re.escape(measure) + r"( \(.*\))?", str(column))]
        if not columns:
            raise KeyError(f"found the measure {measure!r}, expected a column of cells.csv without its unit")
        column = str(columns[0])
        keys = [str(key) for key in cells.columns[1 : list(cells.columns).index("replications")]]
        numbers = {key: cells[key].astype(str).str.extract(r"^([-+.\deE]+)")[0].astype(float) for key in keys}
        x = x or next((key for key in keys if numbers[key].notna().all()), None)
        if x is None or x not in keys:
            raise KeyError(f"x: found {x!r}, expected one of {keys} with numbers")
        if ax is None:
            ax = plt.subplots()[1]
        others = [key for key in keys if key != x]
        groups = cells.groupby(others, sort=False) if others else [((measure,), cells)]
        for label, rows in groups:
            at = numbers[x][rows.index]
            mean = rows[column]
            ends = [(mean - rows[f"{column} ci95_low"]).fillna(0), (rows[f"{column} ci95_high"] - mean).fillna(0)]
            ax.errorbar(at, mean, yerr=ends, marker="o", capsize=3, label=", ".join(map(str, label)))
        suffix = re.sub(r"^[-+.\deE]+", "", str(cells[x].iloc[0]))
        ax.set_xlabel(f"{x} ({suffix})" if suffix else x)
        ax.set_ylabel(column)
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
        ax.legend(title=", ".join(others) or None)
        ax.set_title(self.package["title"])
        return ax
