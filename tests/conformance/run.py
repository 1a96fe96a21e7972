"""Compares all games with ALE, frame by frame; `make conformance` runs the whole of it.

    python tests/conformance/run.py                          # everything: 4 million frames
    python tests/conformance/run.py --suites play sticky --games pong breakout --frames 2000
    python tests/conformance/run.py --list

Each suite is a list of cases (suites.py). Prints one line per difference, a line per suite, and
exits with the number of differences, at most 99.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import environment_library
import side_by_side
import suites

from scanline import games

PROGRESS_SECONDS = 30


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="*", default=list(suites.SUITES), help="names; all")
    parser.add_argument("--games", nargs="*", default=[g.id for g in games.GAMES], help="ids; all")
    parser.add_argument("--frames", type=int, help="of each case, instead of the suite's number")
    parser.add_argument("--console", choices=environment_library.CONSOLES, default="fast")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--json", type=Path, help="write all outcomes here")
    parser.add_argument("--list", action="store_true", help="show the suites and their sizes")
    return parser.parse_args()


def run_one(job: tuple[str, side_by_side.Case, str]) -> tuple[str, side_by_side.Outcome]:
    suite, case, console = job
    return suite, side_by_side.run(case, console)


def run_all(
    jobs: list[tuple[str, side_by_side.Case, str]], num_processes: int
) -> Iterator[tuple[str, side_by_side.Outcome]]:
    with multiprocessing.get_context("spawn").Pool(num_processes) as pool:
        yield from pool.imap_unordered(run_one, jobs)


def describe(case: side_by_side.Case) -> str:
    """The case as the arguments that differ from the defaults."""
    fields = dataclasses.fields(case)
    given = {f.name: getattr(case, f.name) for f in fields if getattr(case, f.name) != f.default}
    return " ".join(f"{key}={value}" for key, value in given.items())


def report(suite: str, outcomes: list[side_by_side.Outcome]) -> None:
    frames = sum(outcome.frames for outcome in outcomes)
    ends = sum(outcome.ends for outcome in outcomes)
    wrong = [outcome for outcome in outcomes if outcome.difference]
    played = len({outcome.case.game for outcome in outcomes})
    print(
        f"{suite}: {len(outcomes)} cases of {played} games, {frames} frames, "
        f"{sum(o.resets for o in outcomes)} resets, {ends} ends, {len(wrong)} different"
    )


def watch(
    jobs: list[tuple[str, side_by_side.Case, str]], num_processes: int
) -> dict[str, list[side_by_side.Outcome]]:
    """Runs the jobs, shows differences and progress; an interrupt keeps what is done."""
    outcomes: dict[str, list[side_by_side.Outcome]] = {suite: [] for suite, _, _ in jobs}
    started = shown = time.perf_counter()
    try:
        for done, (suite, outcome) in enumerate(run_all(jobs, num_processes), start=1):
            outcomes[suite].append(outcome)
            if outcome.difference:
                print(f"DIFFERENT {suite}: {describe(outcome.case)}: {outcome.difference}")
            if time.perf_counter() - shown > PROGRESS_SECONDS:
                shown = time.perf_counter()
                print(f"{done} of {len(jobs)} cases, {shown - started:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(f"{time.perf_counter() - started:.0f} s")
    return outcomes


def main() -> int:
    options = arguments()
    chosen = [games.find(name).id for name in options.games]
    cases = {name: suites.cases(name, chosen, options.frames) for name in options.suites}
    if options.list:
        for name, members in cases.items():
            print(f"{name}: {len(members)} cases, {sum(c.frames for c in members)} frames")
        return 0
    environment_library.load(options.console)  # built once, before the processes start
    jobs = [(name, case, options.console) for name in cases for case in cases[name]]
    outcomes = watch(jobs, options.jobs)
    for suite, members in outcomes.items():
        report(suite, members)
    if options.json:
        rows = {s: [dataclasses.asdict(o) for o in members] for s, members in outcomes.items()}
        options.json.write_text(json.dumps(rows, indent=1))
    return min(99, sum(bool(o.difference) for members in outcomes.values() for o in members))


if __name__ == "__main__":
    sys.exit(main())
