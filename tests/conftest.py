"""What all tests share: a state directory of their own, so that none writes into the user's, and
short runs without what would take half of their time."""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_state() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCANLINE_STATE", os.path.join(folder, "state"))
        patch.setenv("SCANLINE_CACHE", os.path.join(folder, "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def short_runs() -> Iterator[Any]:
    """Runs in this process write no page, and walk through PyTorch's objects once for all.

    Gives the function that writes the page.
    """
    module = importlib.import_module("scanline.training.train")
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        write = module._report
        patch.setattr(module, "_report", lambda path: None)
        yield write
    gc.unfreeze()


@pytest.fixture
def pages(short_runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this test write their page."""
    monkeypatch.setattr(importlib.import_module("scanline.training.train"), "_report", short_runs)
