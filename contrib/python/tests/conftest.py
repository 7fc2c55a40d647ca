"""Fixtures: a directory for each test's gateways, and a bound on each test's time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Callable

import pytest

TIME_LIMIT = 40.0
"""Seconds that one test may take."""

Runner = Callable[[Coroutine[None, None, None]], None]


@pytest.fixture
def run() -> Runner:
    """Runs a coroutine to its end, within the time limit."""

    def runner(coroutine: Coroutine[None, None, None]) -> None:
        asyncio.run(asyncio.wait_for(coroutine, TIME_LIMIT))

    return runner
