"""Loggers: where the rows of a run go besides its own files.

Takes rows, names and numbers at a count of agent steps; gives TensorBoard events or a run of
Weights & Biases. `Logger` is the interface, which a user may implement: see docs/logging.md.
Knows no metric by name.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import IO, Any, Literal, Protocol
from uuid import uuid4

from ..errors import MissingPackageError, RefusedError
from ..files import read_json_lines, replace_file
from ..settings import flat

PROGRESS = "progress.jsonl"
STEP = "agent_steps"
WANDB_ID = "wandb_id.txt"
Track = Literal["none", "wandb"]

_event_files = count()
"""Numbers the event files of this process: two that begin within one second get two names."""


class Logger(Protocol):
    """Takes the rows of one run; `scanline.train(..., loggers=[...])` takes those of a user."""

    def open(self, settings: Mapping[str, Any], folder: Path) -> None:
        """Before the first row, also of a resumed run, whose rows so far are in the folder."""

    def row(self, agent_steps: int, values: Mapping[str, float]) -> None:
        """One row; counts of agent steps rise from row to row."""

    def close(self) -> None:
        """After the last row, also of a run that failed."""


class TensorBoard:
    """Events of TensorBoard in the run's folder, with the settings as hyperparameters.

    TensorBoard's own writer passes events to a thread, in which a disk that refuses them ends that
    thread with a traceback. Here a refused row raises where it is written, as with any log file.
    """

    def open(self, settings: Mapping[str, Any], folder: Path) -> None:
        """Steps of an earlier file behind the rows so far are void."""
        # Half a second to import: not for runs without TensorBoard.
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        name = f"{time.time():010.0f}.{platform.node()}.{os.getpid()}.{next(_event_files)}"
        self._file: IO[bytes] = open(folder / f"events.out.tfevents.{name}", "xb")  # noqa: SIM115
        self._records = RecordWriter(self._file)
        self._add(file_version="brain.Event:2")
        if rows := read_json_lines(folder / PROGRESS):
            self._add(step=int(rows[-1][STEP]) + 1, session_log=SessionLog(status=SessionLog.START))
        if settings:
            self._add(summary=hparams_pb(hyperparameters(settings), trial_id=folder.name))
        self._file.flush()

    def row(self, agent_steps: int, values: Mapping[str, float]) -> None:
        """One point of every curve, passed on to the system."""
        points = [self._summary.Value(tag=name, simple_value=v) for name, v in values.items()]
        self._add(step=agent_steps, summary=self._summary(value=points))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _add(self, **content: object) -> None:
        event = self._event(wall_time=time.time(), **content)
        self._records.write(event.SerializeToString())


class Wandb:
    """A run of Weights & Biases; a resumed run goes on with the same one.

    Project, entity and mode are W&B's own variables: WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE.
    """

    def __init__(self) -> None:
        """Refuses at once what would fail when the run begins."""
        if find_spec("wandb") is None:
            raise MissingPackageError(
                "--track wandb needs the package wandb, which is not installed; get it with: "
                "pip install 'scanline[track]'"
            )
        import wandb

        try:
            if os.environ.get("WANDB_MODE", "online") == "online":
                wandb.login()
        except wandb.errors.Error as error:
            raise RefusedError(
                f"W&B refuses to log in ({str(error).rstrip('.')}); run `wandb login` first, or "
                "set WANDB_MODE=offline."
            ) from error
        self._init, self._settings = wandb.init, wandb.Settings(console="off", save_code=False)

    def open(self, settings: Mapping[str, Any], folder: Path) -> None:
        path = folder / WANDB_ID
        if not path.exists():
            replace_file(path, f"{uuid4().hex[:12]}\n".encode())
        self._run = self._init(
            project=os.environ.get("WANDB_PROJECT", "scanline"),
            id=path.read_text().strip(),
            resume="allow",
            name=folder.name,
            dir=folder,
            config=dict(settings),
            settings=self._settings,
        )

    def row(self, agent_steps: int, values: Mapping[str, float]) -> None:
        self._run.log({STEP: agent_steps, **values}, step=agent_steps)

    def close(self) -> None:
        self._run.finish()


def wanted(tensorboard: bool, track: Track) -> list[Logger]:
    """The loggers that settings ask for."""
    found: list[Logger] = [TensorBoard()] if tensorboard else []
    return found + ([Wandb()] if track == "wandb" else [])


def hyperparameters(settings: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Settings by dotted name, as TensorBoard takes them."""
    values = flat(settings)
    return {k: v if isinstance(v, (bool, int, float)) else str(v) for k, v in values.items()}
