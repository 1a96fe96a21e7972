"""One attempt at a cell, as a process of its own.

`start` takes an order and gives the running process; the process trains or resumes in the folder
of its claim, plays the evaluation games and writes `result.json`. It touches nothing else of a
queue: no ticket, no lease.

A pipe joins it to its worker. Its end asks to save and stop: the worker closes it, or the system
does when the worker dies. A signal would not do: schedulers signal every process of a job, and a
second signal stops a run at once, unsaved.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from ..files import DiskError, refusal_of

if TYPE_CHECKING:
    from ..runs.signals import Signals

DONE, FAILED, REFUSED, DISK, STOPPED = 0, 1, 2, 74, 75
"""Exit codes: result written; failed inside; a user's mistake; the disk; saved and stopped."""
NICENESS = 10
_GRACE_SECONDS = 300.0
"""Longest time for saving after that."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a process is to do."""

    cell: str
    """The cell's file."""
    folder: str
    """Run folder of the claim, which exists."""
    recipe_file: str = ""
    """Where the recipe's bytes lie on this machine, if it is a file."""
    cores: tuple[int, ...] = ()
    """Cores to be bound to; all that are granted when empty."""
    nice: bool = False
    """Whether other programs go first."""


class Attempt:
    """The running process, from the worker's side."""

    def __init__(self, order: Order, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(asdict(order))],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )

    def poll(self) -> int | None:
        """The exit code, once there is one; negative for a signal."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        """Asks to save and stop; may be repeated."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """Ends it at once, and its own processes with it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.ask_to_stop()


def main(words: Sequence[str]) -> int:
    """Carries out an order; errors go to the log, their kind into the exit code."""
    given = json.loads(words[0])
    order = Order(**{**given, "cores": tuple(given["cores"])})
    try:
        return _carry_out(order)
    except UserError as error:
        print(f"scanline: {error}", file=sys.stderr)
        return DISK if isinstance(error, DiskError) else REFUSED
    except KeyboardInterrupt:
        return STOPPED
    except OSError as error:
        traceback.print_exc()
        return DISK if refusal_of(error) else FAILED
    except Exception:
        traceback.print_exc()
        return FAILED


def _carry_out(order: Order) -> int:
    _take_place(order)
    from .. import networks, training
    from ..runs.signals import Signals
    from . import result
    from .cells import read_cell

    networks.own_process()
    signals = Signals(ends_process=True)
    _listen(signals)
    cell, folder = read_cell(Path(order.cell)), Path(order.folder)
    plan = cell.plan(order.recipe_file, live=False)
    resume = (folder / "settings.json").exists()
    run = training.carry_out(plan, out=folder, resume=resume, signals=signals)
    if run.stop.kind == "signal":
        return STOPPED
    result.write(cell, plan, run)
    return DONE


def _take_place(order: Order) -> None:
    if order.nice:
        os.nice(NICENESS)
    if order.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order.cores)


def _listen(signals: Signals) -> None:
    """Stops this process when the worker asks for it or is gone."""

    def wait() -> None:
        while os.read(0, 64):
            pass
        if signals.stop is None:  # a scheduler may have signalled this process itself
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_GRACE_SECONDS)
        os._exit(STOPPED)

    threading.Thread(target=wait, name="worker's pipe", daemon=True).start()


def last_line(log: Path) -> str:
    """What a process said last: the error itself, after a traceback."""
    lines = [line for line in _tail(log).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _tail(log: Path, num_bytes: int = 20_000) -> str:
    with suppress(OSError):
        return log.read_bytes()[-num_bytes:].decode(errors="replace")
    return ""


def error_text(log: Path, code: int) -> str:
    """The error of a process: one line that says what it was, and the end of its log."""
    first = last_line(log) if code in (FAILED, REFUSED) else ""
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{first or f'The run ended without a result ({ended}).'}\n\n{_tail(log)}"


if __name__ == "__main__":
    code = main(sys.argv[1:])
    if code == STOPPED:  # threads may still be at work in native code
        os._exit(code)
    sys.exit(code)
