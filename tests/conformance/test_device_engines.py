"""Engines on devices beside `native`, a little of what device_engines.py compares at length."""

from __future__ import annotations

import device_engines
import pytest
from device_engines import DeviceCase, Pair


@pytest.mark.parametrize("rom", ["4K 0", "DPC 2"])
def test_a_hostile_cartridge_plays_like_native(rom: str) -> None:
    case = DeviceCase(engine="gpu-host", game="pong", rom=rom, steps=9)
    assert device_engines.run(case).difference == ""


def test_eight_games_in_one_batch_play_like_native() -> None:
    (case,) = device_engines.batch("gpu-host", "adventure")
    outcome = device_engines.run(case)
    assert (outcome.difference, len(case.roms)) == ("", 8)


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = Pair._compare

    def spoilt(pair: Pair, group: int, when: str) -> None:
        pair.arrays[1].reward[0] += when == "step 3"
        compare(pair, group, when)

    monkeypatch.setattr(Pair, "_compare", spoilt)
    found = device_engines.run(DeviceCase(engine="gpu-host", game="pong", steps=12)).difference
    assert found == "reward differs at step 3, group 0"
