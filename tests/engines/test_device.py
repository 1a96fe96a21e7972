"""Kernels on the host grid give what engine `native` gives, in whatever order lanes run."""

from __future__ import annotations

from typing import Any

import devices
import numpy as np
import pytest
import toys

from scanline.engines import Engine, EngineSettings, ProtocolRefusedError
from scanline.engines.device import DeviceEngine
from scanline.engines.gpu_host import HostLauncher
from scanline.engines.lanes import NUMBERS
from scanline.engines.launcher import layout_macros, sources, sources_fingerprint
from scanline.engines.native import NativeEngine


def on_host(settings: EngineSettings) -> Engine:
    return DeviceEngine(settings, HostLauncher())


def reversed_order(num: int) -> np.ndarray:
    return np.arange(num)[::-1]


def shuffled_order(num: int) -> np.ndarray:
    return np.random.default_rng(num).permutation(num)


# One game for each of the nine cartridge types; paddles and joysticks.
@pytest.mark.parametrize(
    "game",
    [
        *("breakout", "space_invaders", "asteroids", "elevator_action", "road_runner"),
        *("klax", "montezuma_revenge", "robotank", "pitfall2"),
    ],
)
def test_every_cartridge_type_plays_like_native(game: str) -> None:
    settings = devices.settings_of(game, num_envs=2)
    devices.assert_plays_like_native(on_host, settings, 60, snapshot_at=(3, 59))


def test_the_games_above_have_nine_cartridge_types() -> None:
    marks = test_every_cartridge_type_plays_like_native.pytestmark
    names = marks[0].args[1]
    built = [on_host(devices.settings_of(name, num_envs=1)) for name in names]
    assert {engine._games[0].cartridge for engine in built} == {
        *("2K", "4K", "F8", "F8SC", "F6", "F6SC", "E0", "FE", "DPC")
    }


@pytest.mark.parametrize("autoreset", ["same-step", "next-step"])
@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("baselines", {}),
        ("machado", {}),
        ("cule", {}),
        ("baselines", {"life_loss": "full-reset", "crop": "first-210", "pooling": "none"}),
        ("baselines", {"life_loss": "noops-again", "frame_skip_min": 2, "frame_skip": 5}),
        ("baselines", {"life_loss": "noop-fire-up", "fire_reset": "noop-fire-up", "sticky": 0.25}),
    ],
)
def test_lives_ends_and_limits_are_those_of_native(
    protocol: str, options: dict[str, Any], autoreset: str
) -> None:
    settings = devices.settings_of(
        "breakout", protocol, autoreset=autoreset, episode_limit_frames=900, **options
    )
    happened = devices.assert_plays_like_native(on_host, settings, 300, snapshot_at=(150,))
    assert happened["ended"] >= 3
    assert happened["life_lost"] >= 3 or options.get("life_loss") == "full-reset"


@pytest.mark.parametrize("order", [reversed_order, shuffled_order])
def test_the_order_of_lanes_does_not_matter(order: Any) -> None:
    settings = devices.settings_of(
        ["pong", "space_invaders"] * 3,
        num_envs=6,
        num_groups=2,
        full_action_space=True,
        episode_limit_frames=300,
        first_env_id=5,
    )

    def build(settings: EngineSettings) -> Engine:
        return DeviceEngine(settings, HostLauncher(order=order))

    devices.assert_plays_like_native(build, settings, 90, snapshot_at=(80,))


def test_snapshots_move_between_engines() -> None:
    settings = devices.settings_of("space_invaders", episode_limit_frames=400)
    native, device = NativeEngine(settings), on_host(settings)
    actions = toys.random_actions(80, 3, native.spaces.num_actions)
    toys.record(native, actions)
    device.restore(native.snapshot())
    assert device.snapshot() == native.snapshot()
    both = [toys.step_arrays(3, native.spaces) for _ in range(2)]
    for row in actions:
        for engine, out in zip((native, device), both, strict=True):
            engine.send(0, row)
            engine.recv(0, out)
        devices.assert_equal(native, device, both, 0, "after a restore")
    native.restore(device.snapshot())
    assert native.snapshot() == device.snapshot()


def test_a_damaged_snapshot_is_refused_and_changes_nothing() -> None:
    device = on_host(devices.settings_of("pong"))
    with pytest.raises(RuntimeError, match="Reset before taking a snapshot"):
        device.snapshot()
    device.reset(0, toys.step_arrays(3, device.spaces))
    before = device.snapshot()
    broken = bytearray(before[2])
    broken[2000] ^= 1
    with pytest.raises(ValueError, match="its bytes are damaged"):
        device.restore([before[1], before[0], bytes(broken)])
    assert device.snapshot() == before


def test_a_masked_reset_touches_its_rows_only() -> None:
    settings = devices.settings_of("breakout")
    native, device = NativeEngine(settings), on_host(settings)
    both = [toys.step_arrays(3, native.spaces) for _ in range(2)]
    mask = np.array([True, False, True])
    for engine, out in zip((native, device), both, strict=True):
        engine.reset(0, toys.step_arrays(3, native.spaces))
        engine.reset(0, out, mask)
    devices.assert_equal(native, device, both, 0, "a masked reset")
    for engine, out in zip((native, device), both, strict=True):
        engine.reset(0, out, seed=9)
    devices.assert_equal(native, device, both, 0, "a reset with a seed")


@pytest.mark.parametrize("protocol", ["ale-vector", "nature", "paac", "envpool"])
def test_other_protocols_are_refused_by_name(protocol: str) -> None:
    with pytest.raises(ProtocolRefusedError, match=r"cannot honour .* the nearest .* 'baselines'"):
        on_host(devices.settings_of("pong", protocol))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reset": "ale"}, "resets from cached starts only"),
        ({"autoreset": "disabled"}, "starts ended episodes by itself"),
        ({"height": 42, "width": 80}, "do not divide those of the picture"),
    ],
)
def test_what_kernels_cannot_do_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        on_host(devices.settings_of("pong", **options))


def test_an_action_outside_of_the_set_is_refused() -> None:
    device = on_host(devices.settings_of("pong"))
    device.reset(0, toys.step_arrays(3, device.spaces))
    with pytest.raises(ValueError, match="Environment 1 was given an action outside of its set"):
        device.send(0, np.array([0, 6, 0]))
    device.send(0, np.array([0, 5, 0]))


def test_kernel_sources_are_installed() -> None:
    for name in ("gpu/kernels.cl", "gpu/kernels.inc", "env/agent_step.h", "core/types.h"):
        assert (sources() / name).is_file()
    assert len(sources_fingerprint()) == 16


def test_layouts_are_what_kernels_are_told() -> None:
    assert NUMBERS.itemsize == 32
    assert layout_macros()["SCANLINE_LANE_BYTES"] % 8 == 0
