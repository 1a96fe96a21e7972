"""Numbers of threads that a test of networks sets are undone after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from scanline import _native


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads(), _native.layer_threads()
    yield
    torch.set_num_threads(before[0])
    _native.set_layer_threads(before[1])
