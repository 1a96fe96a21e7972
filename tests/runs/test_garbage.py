"""Objects that a run begins with are out of the collector's sight while it lasts, and no longer."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from scanline.runs.garbage import frozen_garbage


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.freeze()


def test_objects_are_frozen_inside_the_block_only() -> None:
    assert gc.get_freeze_count() == 0
    with frozen_garbage():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_objects_are_seen_again_after_an_error() -> None:
    def fail() -> None:
        with frozen_garbage():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with frozen_garbage():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
