"""TensorBoard's hyperparameters, and Weights & Biases for real, in its offline mode."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import scanline
from scanline.errors import MissingPackageError, RefusedError
from scanline.files import read_json_lines
from scanline.runs import loggers

SHORT: dict[str, Any] = {
    "network": "mlp",
    "num_threads": 1,
    "live": False,
    "say": lambda sentence: None,
}


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("HOME", "WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


def wandb_records(path: Path) -> list[Any]:
    """What a file of W&B holds: parts of records in blocks of 32 KiB, as LevelDB's logs have."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, content, found = path.read_bytes(), 7, b"", []
    while place + 7 <= len(data):
        left = 32_768 - place % 32_768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        content += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            found.append(Record.FromString(content))
            content = b""
    return found


def histories(folder: Path) -> list[list[dict[str, str]]]:
    """Of every W&B file of a run: its identity and settings, and its rows, as JSON by name."""
    found = []
    for path in sorted((folder / "wandb").glob("offline-run-*/run-*.wandb")):
        rows = []
        for record in wandb_records(path):
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({i.key or "/".join(i.nested_key): i.value_json for i in items})
            elif record.WhichOneof("record_type") == "run":
                about = {"run_id": record.run.run_id, "project": record.run.project}
                rows.append({**about, **{c.key: c.value_json for c in record.run.config.update}})
        found.append(rows)
    return found


@pytest.mark.usefixtures("offline")
def test_wandb_gets_settings_and_rows_and_a_resumed_run_is_the_same_one(tmp_path: Path) -> None:
    out = tmp_path / "x"
    for agent_steps in (2_000, 4_000):
        scanline.train(
            "paac",
            "scanline/Catch-v0",
            out=out,
            resume=out.exists(),
            agent_steps=agent_steps,
            log_every_agent_steps=1_000,
            track="wandb",
            **SHORT,
        )
    identity = (out / loggers.WANDB_ID).read_text().strip()
    first, second = histories(out)
    for rows in (first, second):
        about = next(row for row in rows if "run_id" in row)
        assert about["run_id"] == identity
        assert about["project"] == "scanline"
        assert "scanline/Catch-v0" in about["game"]
    steps = [int(row["agent_steps"]) for row in first + second if "agent_steps" in row]
    assert steps == [row["agent_steps"] for row in read_json_lines(out / "progress.jsonl")]
    assert len(steps) == 4
    assert any("losses/policy_loss" in row and "charts/SPS" in row for row in second)


def test_without_a_login_one_sentence_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offline: None
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    command = [sys.executable, "-m", "scanline", "train", "paac", "pong", "--track", "wandb"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "x")],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ),
        timeout=100,
    )
    assert done.returncode == 2, done.stderr
    assert "run `wandb login` first, or set WANDB_MODE=offline" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "x").exists()


def test_without_the_package_one_sentence_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loggers, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install 'scanline\[track\]'"):
        scanline.train("paac", "pong", out=tmp_path / "x", track="wandb", **{"live": False})
    assert not (tmp_path / "x").exists()


def test_an_unknown_tracker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="track"):
        scanline.train("paac", "pong", out=tmp_path / "x", track="nowhere")


def test_tensorboard_has_the_settings_as_hyperparameters(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    board = loggers.TensorBoard()
    board.open({"game": "pong", "recipe": {"sampling": {"num_envs": 32}}, "live": True}, tmp_path)
    board.row(10, {"charts/SPS": 1.0})
    board.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    (content,) = (events.summary_metadata["_hparams_/session_start_info"].plugin_data.content,)
    start = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert start["game"].string_value == "pong"
    assert start["recipe.sampling.num_envs"].number_value == 32
    assert start["live"].bool_value is True
    assert [point.step for point in events.Scalars("charts/SPS")] == [10]
