"""Checkpoints survive kills, damage and full disks, and keep what they were told to keep."""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from scanline.files import DiskError
from scanline.runs.checkpoint import (
    CheckpointError,
    Checkpoints,
    CheckpointSettings,
    DamagedCheckpointWarning,
    load_latest,
)


def state_at(step: int, size: int = 8) -> dict[str, Any]:
    return {"weights": torch.full((size,), float(step)), "step": step, "snapshots": [b"a", b""]}


def saved(folder: Path, *steps: int, **settings: int) -> Checkpoints:
    checkpoints = Checkpoints(folder, CheckpointSettings(**settings))
    for step in steps:
        checkpoints.save(state_at(step), step)
    return checkpoints


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "segments")


def steps_in(folder: Path) -> list[int]:
    return [int(name.rsplit("-", 1)[1]) for name in names(folder)]


def test_the_newest_comes_back(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20)
    checkpoint = load_latest(tmp_path)
    assert checkpoint.agent_steps == 20
    assert checkpoint.state["step"] == 20
    assert torch.equal(checkpoint.state["weights"], torch.full((8,), 20.0))
    assert checkpoint.state["snapshots"] == [b"a", b""]


def test_the_newest_k_stay_and_the_milestones(tmp_path: Path) -> None:
    saved(
        tmp_path,
        *range(10, 130, 10),
        keep_checkpoints=2,
        milestone_every_agent_steps=45,
    )
    assert steps_in(tmp_path) == [50, 90, 110, 120]


def test_no_checkpoint_is_none_for_the_writer_and_a_sentence_for_a_reader(tmp_path: Path) -> None:
    assert saved(tmp_path).latest() is None
    with pytest.raises(CheckpointError, match="There is no checkpoint in"):
        load_latest(tmp_path)
    with pytest.raises(CheckpointError, match="There is no checkpoint in"):
        load_latest(tmp_path / "nowhere")


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 1 << (place % 8)
    path.write_bytes(data)


@pytest.mark.parametrize("file", ["manifest.json", "tensors.safetensors"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "remove"])
def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(
    tmp_path: Path, file: str, damage: str
) -> None:
    saved(tmp_path, 10, 20)
    path = tmp_path / names(tmp_path)[-1] / file
    match damage:
        case "flip":
            flip(path, path.stat().st_size // 2)
        case "truncate":
            os.truncate(path, path.stat().st_size - 1)
        case "empty":
            os.truncate(path, 0)
        case "remove":
            path.unlink()
    with pytest.warns(DamagedCheckpointWarning, match=str(path)):
        assert load_latest(tmp_path).state["step"] == 10


@pytest.mark.parametrize("file", ["manifest.json", "tensors.safetensors"])
def test_no_flipped_bit_gives_a_different_state(tmp_path: Path, file: str) -> None:
    saved(tmp_path, 10)
    path = tmp_path / names(tmp_path)[0] / file
    intact = path.read_bytes()
    for place in random.Random(0).sample(range(len(intact)), min(len(intact), 150)):
        path.write_bytes(intact)
        flip(path, place)
        try:
            state = load_latest(tmp_path).state
        except CheckpointError:
            continue
        assert state["step"] == 10  # white space, or the hash's own key
        assert torch.equal(state["weights"], torch.full((8,), 10.0))


def test_none_usable_is_one_error_that_names_the_files(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20)
    for name in names(tmp_path):
        flip(tmp_path / name / "tensors.safetensors", 100)
    with pytest.raises(CheckpointError, match="None of the 2 checkpoints") as caught:
        load_latest(tmp_path)
    for name in names(tmp_path):
        assert f"{name}/tensors.safetensors does not match its hash" in str(caught.value)


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    from scanline.runs import checkpoint

    saved(tmp_path, 10)
    path = tmp_path / names(tmp_path)[0] / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    manifest["format_version"] = 99
    path.write_text(json.dumps({**manifest, "sha256": checkpoint._digest(manifest)}))
    with pytest.raises(CheckpointError, match="has format 99; this scanline reads 1"):
        load_latest(tmp_path)


def test_a_manifest_that_no_run_wrote_is_damaged_though_its_hash_is_right(tmp_path: Path) -> None:
    from scanline.runs import checkpoint

    checkpoints = saved(tmp_path)
    stream = checkpoints.segments("rows")
    stream.append({"x": torch.arange(4)})
    checkpoints.save({**state_at(10), "stream": stream.state()}, 10)
    path = tmp_path / names(tmp_path)[0] / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    damaged = 0
    for place in list(places(manifest)):
        for other in (None, -1, "text", ["x"], {"$": "tensor"}, {"$": "no such kind"}):
            changed = copy.deepcopy(manifest)
            parent = changed
            for key in place[:-1]:
                parent = parent[key]
            parent[place[-1]] = other
            path.write_text(json.dumps({**changed, "sha256": checkpoint._digest(changed)}))
            try:
                load_latest(tmp_path)
            except CheckpointError:
                damaged += 1
    assert damaged > 50
    manifest["segments"][0]["name"] = "../../elsewhere"
    path.write_text(json.dumps({**manifest, "sha256": checkpoint._digest(manifest)}))
    with pytest.raises(CheckpointError, match="a segment lies in another folder"):
        load_latest(tmp_path)
    saved(tmp_path)  # a writer that clears up meets it too


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value of a tree stands."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


def test_a_resumed_run_replaces_the_damaged_one_before_an_intact_one(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20)
    (tmp_path / names(tmp_path)[-1] / "manifest.json").unlink()
    checkpoints = Checkpoints(tmp_path, CheckpointSettings(keep_checkpoints=2))
    with pytest.warns(DamagedCheckpointWarning):
        checkpoints.latest()
    checkpoints.save(state_at(20), 20)
    assert steps_in(tmp_path) == [10, 20]
    assert load_latest(tmp_path).state["step"] == 20


def test_debris_is_removed_at_the_next_start_only(tmp_path: Path) -> None:
    saved(tmp_path, 10)
    (tmp_path / ".writing-000001-agent-steps-20").mkdir()
    assert load_latest(tmp_path).agent_steps == 10  # a reader may run beside the writer
    assert ".writing-000001-agent-steps-20" in names(tmp_path)
    saved(tmp_path)
    assert steps_in(tmp_path) == [10]


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_refused_write_leaves_the_previous_checkpoint_and_no_debris(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10)
    with (
        largest_file(100_000),
        pytest.raises(DiskError, match="the previous checkpoint is intact; free some space"),
    ):
        checkpoints.save(state_at(20, size=1_000_000), 20)
    assert steps_in(tmp_path) == [10]
    assert load_latest(tmp_path).state["step"] == 10
    checkpoints.save(state_at(30), 30)
    assert load_latest(tmp_path).state["step"] == 30


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_one_sentence(tiny_disk: Path) -> None:
    checkpoints = saved(tiny_disk, 10)
    with pytest.raises(DiskError) as caught:
        checkpoints.save(state_at(20, size=1_000_000), 20)
    assert str(caught.value).startswith("Could not write the checkpoint")
    assert "the disk is full" in str(caught.value)
    assert steps_in(tiny_disk) == [10]
    assert load_latest(tiny_disk).state["step"] == 10


PRELUDE = """
    import os, random, shutil, signal, sys, time
    from pathlib import Path
    import torch
    from scanline.runs.checkpoint import Checkpoints, CheckpointSettings, load_latest

    torch.set_num_threads(1)
    folder = Path(sys.argv[1])

    def check(at_least):
        checkpoints = Checkpoints(folder, CheckpointSettings(keep_checkpoints=2))
        latest = checkpoints.latest()
        step = latest.agent_steps if latest else 0
        assert step >= at_least, (step, at_least)
        replay = checkpoints.segments("replay")
        if latest:
            assert torch.equal(latest.state["w"], torch.full((50_000,), float(step)))
            replay.load(latest.state["replay"])
            assert replay.next_row == step
            assert [int(r) for _, c in replay.read() for r in c["r"]] == list(range(step))[-3:]
        debris = [p for p in folder.rglob(".writing-*")]
        assert not debris, debris
        return checkpoints, replay, step

    def save(checkpoints, replay, step):
        replay.append({"r": torch.tensor([step])})
        replay.drop_before(step - 2)
        state = {"w": torch.full((50_000,), step + 1.0), "replay": replay.state()}
        checkpoints.save(state, step + 1)
"""

KILLS = """
    acknowledged = 0
    for kill in range(30):
        reports, report = os.pipe()
        child = os.fork()
        if not child:
            checkpoints, replay, step = check(0)
            while True:
                save(checkpoints, replay, step)
                step += 1
                os.write(report, b"x")
        os.close(report)
        os.read(reports, 1)  # at least one save is done
        time.sleep(random.Random(kill).uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        acknowledged += 1
        while os.read(reports, 1):
            acknowledged += 1
        os.close(reports)
        acknowledged = max(acknowledged, check(acknowledged)[2])
    print(acknowledged)
"""

EVERY_CALL = """
    watched = ["mkdir", "fsync", "rename", "replace", "unlink", "rmdir"]
    for start in (0, 1, 5):
        last_call = 0
        while True:
            shutil.rmtree(folder, ignore_errors=True)
            parts = check(0)
            for step in range(start):
                save(parts[0], parts[1], step)
            child = os.fork()
            if not child:
                calls = 0
                def dying(real):
                    def call(*args, **kwargs):
                        global calls
                        calls += 1
                        if calls > last_call:
                            os._exit(9)
                        return real(*args, **kwargs)
                    return call
                for name in watched:
                    setattr(os, name, dying(getattr(os, name)))
                save(parts[0], parts[1], start)
                os._exit(0)
            finished = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            check(start + finished)
            if finished:
                break
            last_call += 1
        print(last_call)
"""


def run_script(script: str, folder: Path) -> list[int]:
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, folder], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_a_kill_at_any_moment_leaves_the_last_completed_checkpoint(tmp_path: Path) -> None:
    (num_saved,) = run_script(KILLS, tmp_path / "checkpoints")
    assert num_saved >= 30


def test_a_death_at_every_single_call_of_saving_leaves_a_checkpoint(tmp_path: Path) -> None:
    num_calls = run_script(EVERY_CALL, tmp_path / "checkpoints")
    assert num_calls[0] >= 7  # two files, their folder, the rename, its folder, the segment
    assert num_calls[2] > num_calls[1]  # with five saved, old ones are removed as well


@pytest.mark.parametrize(
    ("setting", "value"), [("keep_checkpoints", 0), ("milestone_every_agent_steps", -1)]
)
def test_impossible_settings_are_refused_by_name(setting: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{setting}={value}"):
        CheckpointSettings(**{setting: value})


def test_loading_gives_no_warning_when_nothing_is_wrong(tmp_path: Path) -> None:
    saved(tmp_path, 10, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_latest(tmp_path)
