"""What all tests share: a state directory of their own, so that none writes into the user's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_state() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCANLINE_STATE", os.path.join(folder, "state"))
        patch.setenv("SCANLINE_CACHE", os.path.join(folder, "cache"))
        yield
