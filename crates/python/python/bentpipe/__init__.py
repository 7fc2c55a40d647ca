"""Scenarios of satellite links: runs, simulations by steps, results as data frames and plots.

    results = bentpipe.run("my.toml")
    results.cells                        # a pandas frame; results.table("cells", "polars")
    results.plot("download.goodput")
"""

from ._bentpipe import __version__
from .capture import read_capture
from .cluster import distribute
from .errors import LabError, ScenarioError
from .results import Results
from .running import Simulation, merge, run

__all__ = [
    "LabError", "Results", "ScenarioError", "Simulation", "__version__", "distribute", "merge",
    "read_capture", "run",
]
