"""Runs that are killed, asked to stop and stopped by their seconds: how soon they end, and whether
a resumed run ends like one that was left alone.

Takes names of recipes (all of them by default); writes a table and its figures. Three matrices:

    python benchmarks/interruptions.py exact [--recipes a b] [--short] [--out benchmarks/results]
    python benchmarks/interruptions.py segments [--recipes a b] [--kills 10]
    python benchmarks/interruptions.py sizes [--recipes a b]

`exact`: small runs of Pong. SIGKILL at random times and inside writes, before a file's fsync,
around renames; SIGTERM and Ctrl-C at random times; each run is resumed until it is done, and what
it has learned is compared with an undisturbed run. `segments`: SIGKILL inside those of a replay.
`sizes`: with the recipe's own network, environments and rollouts, Ctrl-C at a random time and
--seconds 5. `merge` puts what the three found into interruptions.md.

Every run is a fork of one process that has imported everything and started nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scanline
from scanline import cli, files, recipes
from scanline.parameters import CentralSettings
from scanline.runners.concurrent import Concurrent
from scanline.runners.free_running import FreeRunning
from scanline.runs.checkpoint import load_latest
from scanline.stores import ReplaySettings, RolloutSettings, WindowSettings

GAME = "pong"
LONGEST_SECONDS = 180.0
TRAINING = "training."
"""End of the line that a run prints when its loop begins."""
TWO_LEARNERS = "accelerated-ppo --learners 2"
ROWS = (*recipes.RECIPES, TWO_LEARNERS)


def recipe_of(row: str) -> recipes.Recipe:
    return recipes.RECIPES[row.split()[0]]


def is_synchronous(row: str) -> bool:
    recipe = recipe_of(row)
    return not isinstance(recipe.exchange, CentralSettings) and not isinstance(
        recipe.pace, FreeRunning
    )


def has_replay(row: str) -> bool:
    return isinstance(recipe_of(row).store, ReplaySettings)


def small(row: str) -> dict[str, Any]:
    """Settings of a run of a few seconds that has everything a long one has."""
    recipe = recipe_of(row)
    wide = "104x80" in str(recipe.network)
    changes: dict[str, Any] = {
        "network": "nips-104x80" if wide else "lstm" if recipe.network == "lstm" else "nips",
        "num_envs": 4,
        "agent_steps": 1_600,
        "save_every_agent_steps": 200,
        "log_every_agent_steps": 200,
        "torch_threads": 1,
        "num_threads": 1,
        "seed": 3,
    }
    if recipe.sampling.decorrelation_agent_steps:
        changes["decorrelation_agent_steps"] = 20
    if isinstance(recipe.store, WindowSettings):
        num_blocks = recipe.store.num_blocks
        changes |= {"num_envs": num_blocks * max(1, 10 // num_blocks)}
        changes |= {"agent_steps": 3_200, "save_every_agent_steps": 400}
    if isinstance(recipe.store, RolloutSettings) and recipe.store.epochs > 1:
        long = recipe.sampling.rollout_agent_steps == 0
        changes |= {"rollout_samples": 128} if long else {"rollout_agent_steps": 32}
        changes |= {"agent_steps": 1_024, "save_every_agent_steps": 256}
    if isinstance(recipe.store, ReplaySettings):
        changes |= {
            "capacity_agent_steps": 1_200,  # wraps
            "batch_size": 32,
            "training_intensity": 2.0,
            "learning_starts_agent_steps": 200,
            "target_agent_steps": 400,
            "replay_segment_agent_steps": 200,
            "epsilon_agent_steps": 2_000,
            "evaluate_every_agent_steps": 1_000,
            "pause_games": 0,
            "pause_agent_steps": 64,
        }
    if isinstance(recipe.pace, Concurrent):
        changes |= {"rollout_agent_steps": 10, "training_intensity": 3.2}
    if isinstance(recipe.exchange, CentralSettings):
        changes |= {"learners": 2}
    if "accelerated-dqn-async" in row:
        changes |= {"evaluate_every_agent_steps": 0}
    if "--learners" in row:
        changes |= {"learners": 2}
    return changes


def own_size(row: str) -> dict[str, Any]:
    """The recipe's own sizes; only its warm start is short, so that there is time for learning."""
    recipe = recipe_of(row)
    changes: dict[str, Any] = {}
    if recipe.sampling.decorrelation_agent_steps:
        changes["decorrelation_agent_steps"] = 5
    if isinstance(recipe.store, ReplaySettings):
        changes["learning_starts_agent_steps"] = 2_000
    if "--learners" in row:
        changes["learners"] = 2
    return changes


# What is done to a run


@dataclass(frozen=True)
class Disturbance:
    """A signal some seconds after the loop has begun, or a kill inside a call."""

    name: str
    number: int = 0
    """Signal that is sent; 0 for none."""
    after_seconds: float = 0.0
    at_once: bool = False
    """Whether the seconds count from the start of the process, not from that of the loop."""
    prepare: Callable[[], None] = lambda: None
    """What the process does before it runs, e.g. lay a trap."""


NONE = Disturbance("none")


class Trap:
    """Kills its process at the so-manieth of the calls that write a run's files."""

    def __init__(self, number: int, only: str = "") -> None:
        """`only`: part of the path that a call must have to count."""
        self._left, self._only = number, only

    def lay(self) -> None:
        write = files.write_synced
        for module in [m for name, m in sys.modules.items() if name.startswith("scanline.")]:
            if getattr(module, "write_synced", None) is write:
                module.write_synced = self._torn(write)  # type: ignore[attr-defined]
        os.fsync = self._unsynced(os.fsync)  # type: ignore[assignment]
        os.replace = self._renamed(os.replace)  # type: ignore[assignment]
        os.rename = self._renamed(os.rename)  # type: ignore[assignment]

    def _torn(self, write: Callable[..., None]) -> Callable[..., None]:
        def torn(path: Path, data: bytes) -> None:
            if self._springs(path):
                with open(path, "wb") as file:
                    file.write(data[: len(data) // 2])
                    file.flush()
                    die()
            write(path, data)

        return torn

    def _unsynced(self, fsync: Callable[..., None]) -> Callable[..., None]:
        def unsynced(descriptor: int) -> None:
            if self._springs(os.readlink(f"/proc/self/fd/{descriptor}")):
                die()
            fsync(descriptor)

        return unsynced

    def _renamed(self, rename: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: Any, target: Any) -> None:
            if self._springs(target):
                die()
            rename(source, target)
            if self._springs(target):
                die()

        return renamed

    def _springs(self, path: Any) -> bool:
        if self._only not in str(path):
            return False
        self._left -= 1
        return self._left == 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


# One run


@dataclass
class Outcome:
    """What was seen of one process."""

    ended: str
    """Exit code, or the name of the signal that ended it."""
    seconds: float
    loop_at: float | None = None
    view_at: float | None = None
    sent_at: float | None = None
    word_at: float | None = None
    text: str = ""

    def since(self, name: str, before: str) -> float | None:
        after, start = getattr(self, name), getattr(self, before)
        return None if after is None or start is None else after - start

    @property
    def word_seconds(self) -> float | None:
        return self.since("word_at", "sent_at")

    @property
    def end_seconds(self) -> float | None:
        return None if self.sent_at is None else self.seconds - self.sent_at

    @property
    def view_seconds(self) -> float | None:
        return self.since("view_at", "loop_at")


def words_of(row: str, out: Path, settings: dict[str, Any]) -> list[str]:
    """The command's arguments."""
    given = [
        f"--{'' if value is not False else 'no-'}{name.replace('_', '-')}"
        + ("" if isinstance(value, bool) else f"={value}")
        for name, value in settings.items()
    ]
    resume = ["--resume"] if (out / "settings.json").exists() else []
    return ["train", row.split()[0], GAME, *given, f"--out={out}", "--no-tensorboard", *resume]


def run(words: list[str], disturbance: Disturbance) -> Outcome:
    """One process, disturbed once."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        sys.argv = ["scanline", *words]
        disturbance.prepare()
        os._exit(_main())
    os.close(writing)
    try:
        return _observed(child, reading, disturbance)
    finally:
        os.close(reading)


def _main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    try:
        return cli.main()
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()


def _observed(child: int, reading: int, disturbance: Disturbance) -> Outcome:
    begun, seen, rest = time.monotonic(), Outcome("", 0.0), b""
    due: float | None = disturbance.after_seconds if disturbance.at_once else None
    is_open = True
    while True:
        now = time.monotonic() - begun
        if now > LONGEST_SECONDS:
            os.kill(child, signal.SIGKILL)
        if due is not None and now >= due and disturbance.number:
            os.kill(child, disturbance.number)
            seen.sent_at, due = time.monotonic() - begun, None
        if is_open and select.select([reading], [], [], 0.005)[0]:
            data = os.read(reading, 65536)
            is_open = bool(data)
            rest += data
            *lines, rest = rest.split(b"\n")
            for line in lines:
                _note(line.decode(errors="replace"), seen, time.monotonic() - begun)
            if seen.loop_at is not None and due is None and seen.sent_at is None:
                due = seen.loop_at + disturbance.after_seconds
        elif not is_open:
            time.sleep(0.005)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            seen.seconds = time.monotonic() - begun
            code = os.waitstatus_to_exitcode(status)
            seen.ended = signal.Signals(-code).name if code < 0 else str(code)
            return seen


def _note(line: str, seen: Outcome, now: float) -> None:
    seen.text += line + "\n"
    if line.endswith(TRAINING) and seen.loop_at is None:
        seen.loop_at = now
    elif " agent steps (" in line and seen.view_at is None:
        seen.view_at = now
    elif line.startswith(("Ctrl-C:", "SIGTERM:")) and seen.word_at is None:
        seen.word_at = now


def digest(out: Path) -> str:
    """Weights, optimiser, algorithm state and log of a finished run."""
    logs = [out / name for name in ("progress.jsonl", "evaluations.jsonl")]
    parameters = load_latest(out / "checkpoints").state["parameters"]
    return digest_of(parameters, *(log.read_bytes() for log in logs if log.exists()))


def digest_of(*items: Any) -> str:
    """Of tensors, numbers, bytes, and lists or dictionaries of these."""
    whole = hashlib.sha256()

    def add(item: Any) -> None:
        if isinstance(item, dict):
            for key in sorted(item, key=str):
                whole.update(str(key).encode())
                add(item[key])
        elif isinstance(item, list | tuple):
            for each in item:
                add(each)
        elif hasattr(item, "numpy"):
            whole.update(item.contiguous().numpy().tobytes())
        else:
            whole.update(item if isinstance(item, bytes) else repr(item).encode())

    add(items)
    return whole.hexdigest()


# Series of runs


@dataclass
class Row:
    """What was found for one recipe."""

    name: str
    synchronous: bool
    undisturbed_seconds: float = 0.0
    first_view_seconds: float | None = None
    counts: dict[str, int] = field(default_factory=dict)
    """Disturbances by name, those that came too late not counted."""
    word_seconds: dict[str, float] = field(default_factory=dict)
    """Longest, by signal."""
    end_seconds: dict[str, float] = field(default_factory=dict)
    equal: int = 0
    unequal: int = 0
    failures: list[str] = field(default_factory=list)

    def note(self, disturbance: Disturbance, outcome: Outcome) -> None:
        if outcome.view_seconds is not None:
            self.first_view_seconds = max(self.first_view_seconds or 0.0, outcome.view_seconds)
        killed = outcome.ended == "SIGKILL"
        asked = disturbance.number in (signal.SIGTERM, signal.SIGINT)
        obeyed = asked and outcome.word_at is not None and outcome.sent_at is not None
        if not (killed or obeyed):
            if outcome.ended != "0":
                self.failures.append(f"{disturbance.name}: {outcome.ended}\n{outcome.text[-2000:]}")
            return
        self.counts[disturbance.name] = self.counts.get(disturbance.name, 0) + 1
        if obeyed:
            name = disturbance.name
            assert outcome.word_seconds is not None and outcome.end_seconds is not None
            self.word_seconds[name] = max(self.word_seconds.get(name, 0.0), outcome.word_seconds)
            self.end_seconds[name] = max(self.end_seconds.get(name, 0.0), outcome.end_seconds)
            if outcome.ended not in ("0", "130", "143"):
                self.failures.append(f"{disturbance.name}: {outcome.ended}\n{outcome.text[-2000:]}")


def series(
    row: Row, settings: dict[str, Any], disturbances: list[Disturbance], folder: Path, expected: str
) -> None:
    """One run that is disturbed again and again, and resumed until it is done."""
    out = folder / "disturbed"
    shutil.rmtree(out, ignore_errors=True)
    for disturbance in [*disturbances, NONE]:
        outcome = run(words_of(row.name, out, settings), disturbance)
        row.note(disturbance, outcome)
        if outcome.ended == "0" and (outcome.sent_at is None or disturbance is NONE):
            break
    if not row.synchronous or not expected:
        return
    try:
        same = digest(out) == expected
    except Exception as error:
        row.failures.append(f"not readable: {error}")
        same = False
    row.equal, row.unequal = row.equal + same, row.unequal + (not same)
    if not same:
        kept = folder.parent / f"unequal-{row.name.replace(' ', '_')}-{time.time_ns()}"
        shutil.copytree(out, kept)
        row.failures.append(f"not equal after {[d.name for d in disturbances]}; kept as {kept}")


def undisturbed(row: Row, settings: dict[str, Any], folder: Path) -> str:
    out = folder / "undisturbed"
    shutil.rmtree(out, ignore_errors=True)
    outcome = run(words_of(row.name, out, settings), NONE)
    row.note(NONE, outcome)
    row.undisturbed_seconds = outcome.seconds
    loop_seconds = outcome.seconds - (outcome.loop_at or 0.0)
    row.counts.pop("none", None)
    if outcome.ended != "0":
        row.failures.append(f"undisturbed: {outcome.ended}\n{outcome.text[-2000:]}")
        return ""
    row.undisturbed_seconds = loop_seconds
    return digest(out) if row.synchronous else "-"


def exact(name: str, chance: random.Random, short: bool, folder: Path) -> Row:
    row, settings = Row(name, is_synchronous(name)), small(name)
    expected = undisturbed(row, settings, folder)
    if not expected:
        return row
    length = max(row.undisturbed_seconds, 0.5)
    within = lambda: chance.uniform(0.05, 0.9) * length  # noqa: E731

    def by_time(number: int, kind: str) -> Disturbance:
        return Disturbance(kind, number, within() / 2)

    def trapped() -> Disturbance:
        return Disturbance("SIGKILL in a write", prepare=Trap(chance.randint(1, 60)).lay)

    kill, term, interrupt = signal.SIGKILL, signal.SIGTERM, signal.SIGINT
    times = 1 if short else 2
    for _ in range(times):
        killed = [by_time(kill, "SIGKILL") for _ in range(2 * times)]
        series(row, settings, killed, folder, expected)
        series(row, settings, [trapped() for _ in range(3 * times)], folder, expected)
        asked = [by_time(term, "SIGTERM"), by_time(interrupt, "Ctrl-C")]
        series(row, settings, asked, folder, expected)
    return row


def segments(name: str, chance: random.Random, kills: int, folder: Path) -> Row:
    """Kills inside the writes of a replay's segments only."""
    row, settings = Row(name, is_synchronous(name)), small(name)
    expected = undisturbed(row, settings, folder)
    while expected and row.counts.get("SIGKILL in a segment", 0) < kills and not row.failures:
        traps = [
            Disturbance("SIGKILL in a segment", prepare=Trap(chance.randint(1, 45), "replay-").lay)
            for _ in range(6)
        ]
        series(row, settings, traps, folder, expected)
    return row


def sizes(name: str, chance: random.Random, folder: Path) -> Row:
    """Ctrl-C and a limit of seconds in a run of the recipe's own size."""
    row, settings = Row(name, is_synchronous(name)), own_size(name)
    asked = Disturbance("Ctrl-C", signal.SIGINT, chance.uniform(1.0, 5.0))
    out = folder / "asked"
    shutil.rmtree(out, ignore_errors=True)
    row.note(asked, run(words_of(name, out, settings), asked))
    shutil.rmtree(out, ignore_errors=True)
    limited = run(words_of(name, out, {**settings, "seconds": 5}), NONE)
    row.note(NONE, limited)
    if limited.ended == "0":
        took = load_latest(out / "checkpoints", check=None).state["time_split"]["totals_ns"]
        trained = sum(ns for part, ns in took.items() if part != "evaluation") / 1e9
        row.end_seconds["--seconds 5"] = trained - 5.0
    shutil.rmtree(out, ignore_errors=True)
    return row


# Tables


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Markdown of all matrices that were run."""
    texts = [_HEAD.format(version=scanline.__version__)]
    if rows := found.get("exact"):
        texts.append(_EXACT + "\n".join(_exact_line(row) for row in rows.values()))
    if rows := found.get("segments"):
        texts.append(_SEGMENTS + "\n".join(_segment_line(row) for row in rows.values()))
    if rows := found.get("sizes"):
        texts.append(_SIZES + "\n".join(_size_line(row) for row in rows.values()))
    return "\n\n".join(texts) + "\n"


_HEAD = """# Interruptions

Written by `benchmarks/interruptions.py` with scanline {version}. Seconds are the longest that were
seen; the machine had two cores and other work. 'word': from the signal to the first sentence about
it. 'end': from the signal to the end of the process, with the checkpoint and the report written."""
_EXACT = """## Small runs of Pong, resumed until they are done

'equal': series of disturbances after which weights, optimiser, log and evaluations are byte for
byte those of an undisturbed run. Asynchronous recipes cannot be: their resumed runs went on.

""" + (
    "| recipe | SIGKILL by time | SIGKILL in writes, fsync, rename | SIGTERM: number, word, end "
    "| Ctrl-C: number, word, end | first view | equal |\n|---|---|---|---|---|---|---|\n"
)
_SEGMENTS = """## SIGKILL inside the segments of a replay

| recipe | kills | series equal | series not equal |
|---|---|---|---|
"""
_SIZES = """## The recipes' own sizes

Network, environments, rollouts, replay and blocks are the recipe's; only the warm start is
shortened. `--seconds 5`: training time beyond it.

| recipe | first view | Ctrl-C: word | Ctrl-C: end | `--seconds 5`: beyond |
|---|---|---|---|---|
"""


def _seconds(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f} s"


def _exact_line(row: dict[str, Any]) -> str:
    counts, words, ends = row["counts"], row["word_seconds"], row["end_seconds"]
    asked = [
        f"{counts.get(name, 0)}, {_seconds(words.get(name), 2)}, {_seconds(ends.get(name))}"
        for name in ("SIGTERM", "Ctrl-C")
    ]
    total = row["equal"] + row["unequal"]
    equal = f"{row['equal']} of {total}" if row["synchronous"] else "asynchronous"
    failed = f"; {len(row['failures'])} failures" if row["failures"] else ""
    kills = counts.get("SIGKILL", 0), counts.get("SIGKILL in a write", 0)
    first = _seconds(row["first_view_seconds"])
    cells = (row["name"], *kills, *asked, first, f"{equal}{failed}")
    return f"| {' | '.join(map(str, cells))} |"


def _segment_line(row: dict[str, Any]) -> str:
    kills = row["counts"].get("SIGKILL in a segment", 0)
    return f"| {row['name']} | {kills} | {row['equal']} | {row['unequal']} |"


def _size_line(row: dict[str, Any]) -> str:
    words, ends = row["word_seconds"], row["end_seconds"]
    cells = (
        _seconds(row["first_view_seconds"]),
        _seconds(words.get("Ctrl-C"), 2),
        _seconds(ends.get("Ctrl-C")),
        _seconds(ends.get("--seconds 5")),
    )
    return f"| {row['name']} | {' | '.join(cells)} |"


@contextlib.contextmanager
def results(path: Path) -> Iterator[dict[str, dict[str, dict[str, Any]]]]:
    """What was found so far, by matrix and recipe; written afterwards, with its table."""
    file = path / "interruptions.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    yield found
    path.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n")
    (path / "interruptions.md").write_text(table(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("matrix", choices=("exact", "segments", "sizes", "merge"))
    parser.add_argument("--recipes", nargs="*", default=[])
    parser.add_argument("--short", action="store_true", help="fewer disturbances")
    parser.add_argument("--kills", type=int, default=10, help="of `segments`, for each recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    names = [] if given.matrix == "merge" else given.recipes or list(ROWS)
    if given.matrix == "segments":
        names = [name for name in names if has_replay(name) and is_synchronous(name)]
    for name in names:
        chance = random.Random(f"{given.matrix} {name} {given.seed}")
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            if given.matrix == "exact":
                row = exact(name, chance, given.short, Path(folder) / "runs")
            elif given.matrix == "segments":
                row = segments(name, chance, given.kills, Path(folder) / "runs")
            else:
                row = sizes(name, chance, Path(folder) / "runs")
        with results(given.out) as found:
            found.setdefault(given.matrix, {})[name] = vars(row)
        print(f"{name}: {time.monotonic() - begun:.0f} s, {vars(row)}", flush=True)
    if not names:
        with results(given.out):
            pass


if __name__ == "__main__":
    main()
