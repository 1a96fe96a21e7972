"""Fingerprints of short runs: what a change of the code's shape must leave byte for byte.

Takes names of recipes (all with a deterministic result by default); writes the digest of weights,
optimiser, algorithm state and log of each, for every engine that can play it:

    python benchmarks/fingerprints.py record FILE.json [--recipes a b] [--engines native ale]
    python benchmarks/fingerprints.py compare FILE.json [--recipes a b]

Run `record` on the commit before, `compare` on the one after; it prints every difference and ends
with 1 if there is one, or if a signal or a limit of time ended a run before its last step.
Recipes whose parts do not wait for each other are driven in one thread: of a central store one
learner, in this process, until it has so many agent steps; of a free-running recipe one agent of
several environments that is served, received and learned from in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from interruptions import ROWS, digest, digest_of, is_synchronous, recipe_of, small

import scanline
from scanline import training
from scanline.parameters import CentralSettings
from scanline.runners.free_running import collect
from scanline.runners.synchronous import learn
from scanline.threads import WorkerThreads

NUM_SEGMENTS = 79
"""Segments that one agent collects."""
ENGINES = {
    "native": {"game": "pong"},
    "ale": {"game": "pong", "protocol": "ale-vector"},
    "gymnasium": {"game": "scanline/Catch-v0", "protocol": "as-is", "num_workers": 0},
}


def settings_of(row: str, engine: str) -> dict[str, Any]:
    settings = {**small(row), "engine": engine, "tensorboard": False}
    if engine != "native":
        network = "mlp" if engine == "gymnasium" else "nips"
        settings |= {"network": network, **ENGINES[engine]}
    return settings


def fingerprint(row: str, engine: str) -> str:
    """Digest of a finished run, or the sentence with which it was refused."""
    settings = settings_of(row, engine)
    game = settings.pop("game", "pong")
    if not is_synchronous(row):
        central = isinstance(recipe_of(row).exchange, CentralSettings)
        try:
            return (one_learner if central else one_agent)(row.split()[0], game, settings)
        except ValueError as error:
            return f"refused: {error}"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run = scanline.train(row.split()[0], game, out=out, live=False, **settings)
        except ValueError as error:
            return f"refused: {error}"
        if run.stop.kind != "agent_steps":
            raise SystemExit(
                f"{row} on {engine}: {run.stop.sentence} Nothing is recorded or compared: a digest "
                f"of {run.agent_steps:,} of {settings['agent_steps']:,} agent steps says nothing."
            )
        return digest(out)


def one_learner(recipe: str, game: str, settings: dict[str, Any]) -> str:
    """Digest of the central weights that one learner leaves."""
    from scanline.training import central

    settings |= {"learners": 1}
    most = settings.pop("agent_steps")

    class Counters(central.SharedCounters):  # type: ignore[name-defined, misc]
        @property
        def is_stopping(self) -> bool:
            return bool(self.total_agent_steps >= most)

    class Link:
        def answer(self, code: int, item: object = None) -> None: ...

        def orders(self) -> Any:
            return iter([(0, None)])

    central.SharedCounters = Counters
    plan = training.make_plan(recipe, game, live=False, **settings)
    prepared = training.prepared(plan, lambda part: None, lambda sentence: None)
    runtime: Any = prepared.runtime
    try:
        central.learn(Link(), prepared.plan, *runtime.arguments()[0])
        return digest_of(runtime.saved()["parameters"].state())
    finally:
        central.SharedCounters = Counters.__base__
        runtime.close()


def one_agent(recipe: str, game: str, settings: dict[str, Any]) -> str:
    """Digest of weights, optimiser and metrics after updates from one agent's segments."""
    settings |= {"num_envs": 4, "envs_per_agent": 4}
    plan = training.make_plan(recipe, game, live=False, **settings)
    prepared = training.prepared(plan, lambda part: None, lambda sentence: None)
    runtime: Any = prepared.runtime
    threads, told = runtime.threads, []
    receiver = WorkerThreads(stuck_seconds=60.0)
    try:
        threads.sampler.start(threads.store.slot, 1)
        receiver.repeat("receiver", 1, lambda: threads.sampler.receive(0.1))
        published = runtime.published
        threads._tally.updated = lambda metrics, norms: told.append(
            (published.applied_at, {**metrics, **norms})
        )
        for _ in range(NUM_SEGMENTS):
            collect(threads._parts, threads._tally)
            if threads.store.owes:
                learn(threads._learning, threads._tally)
        assert len(told) > 30, len(told)
        return digest_of(published.state(), told)
    finally:
        runtime.close()
        receiver.close()


def fingerprints(rows: list[str], engines: list[str]) -> dict[str, str]:
    found = {}
    for engine in engines:
        for row in rows:
            begun = time.monotonic()
            name = f"{row} on {engine}"
            found[name] = fingerprint(row, engine)
            print(f"{name}: {found[name]} ({time.monotonic() - begun:.0f} s)", flush=True)
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name, digest in after.items() if before.get(name) != digest]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--recipes", nargs="*", default=[])
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    given = parser.parse_args()
    rows = given.recipes or list(ROWS)
    found = fingerprints(rows, given.engines)
    if given.verb == "record":
        given.file.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    changed = differences(json.loads(given.file.read_text()), found)
    print(f"{len(found) - len(changed)} of {len(found)} are equal.")
    for name in changed:
        print(f"differs: {name}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
