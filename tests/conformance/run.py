"""Compares all games with ALE, frame by frame; `make conformance` runs the whole of it.

    python tests/conformance/run.py                          # everything: 5 million frames
    python tests/conformance/run.py --suites play sticky --games pong breakout --frames 2000
    python tests/conformance/run.py --list

Each suite is a list of cases (suites.py). Prints one line per difference, a line per suite, and
exits with the number of differences, at most 99. With --record an interrupted run goes on later.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import environment_library
import native_build
import product_console
import record
import side_by_side
import suites
import vector_side_by_side

import scanline
from scanline import games

PROGRESS_SECONDS = 30
LONGEST_CASE_SECONDS = 1800
CONSOLES = ("product", *environment_library.CONSOLES)

Job = tuple[str, Any, str]
"""Suite, case and console."""
Outcomes = dict[str, list[side_by_side.Outcome]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="*", default=list(suites.SUITES), help="names; all")
    parser.add_argument("--games", nargs="*", default=[g.id for g in games.GAMES], help="ids; all")
    parser.add_argument("--frames", type=int, help="of each case, instead of the suite's number")
    parser.add_argument("--console", choices=CONSOLES, default="product")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--record", type=Path, help="keep outcomes here, and go on from them")
    parser.add_argument("--summary", type=Path, help="write the lines of the suites here too")
    parser.add_argument("--list", action="store_true", help="show the suites and their sizes")
    return parser.parse_args()


def run_one(job: Job) -> side_by_side.Outcome:
    _, case, console = job
    if isinstance(case, side_by_side.Case):
        return side_by_side.run(case, console)
    return vector_side_by_side.run(case)


def run_all(jobs: list[Job], num_processes: int) -> Iterator[tuple[str, side_by_side.Outcome]]:
    """Outcomes as they come; RuntimeError if a process dies or hangs."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(num_processes, mp_context=context) as pool:
        suite_of: dict[Future[side_by_side.Outcome], str] = {
            pool.submit(run_one, job): job[0] for job in jobs
        }
        waiting = set(suite_of)
        try:
            while waiting:
                done, waiting = wait(waiting, LONGEST_CASE_SECONDS, FIRST_COMPLETED)
                if not done:
                    raise RuntimeError(f"No case has ended in {LONGEST_CASE_SECONDS} s.")
                for future in done:
                    yield suite_of[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def describe(case: Any) -> str:
    """The case as the arguments that differ from the defaults."""
    fields = dataclasses.fields(case)
    given = {f.name: getattr(case, f.name) for f in fields if getattr(case, f.name) != f.default}
    return " ".join(f"{key}={value}" for key, value in given.items())


def report(suite: str, outcomes: list[side_by_side.Outcome]) -> str:
    counts = {
        "frames": sum(outcome.frames for outcome in outcomes),
        "resets": sum(outcome.resets for outcome in outcomes),
        "ends of games": sum(outcome.ends for outcome in outcomes),
        "rewards": sum(outcome.rewards for outcome in outcomes),
        "different": sum(bool(outcome.difference) for outcome in outcomes),
    }
    played = len({rom_of(outcome.case) for outcome in outcomes})
    numbers = ", ".join(f"{number} {name}" for name, number in counts.items())
    return f"{suite}: {len(outcomes)} cases of {played} ROMs, {numbers}"


def rom_of(case: Any) -> str:
    return getattr(case, "rom", "") or case.game


def watch(jobs: list[Job], num_processes: int, kept: record.Record | None) -> Outcomes:
    """Runs the jobs, shows differences and progress; an interrupt keeps what is done."""
    outcomes: Outcomes = {suite: [] for suite, _, _ in jobs}
    left = [job for job in jobs if not recall(job, kept, outcomes)]
    if len(left) < len(jobs):
        print(f"{len(jobs) - len(left)} of {len(jobs)} cases were done before")
    started = shown = time.perf_counter()
    try:
        for done, (suite, outcome) in enumerate(run_all(left, num_processes), start=1):
            outcomes[suite].append(outcome)
            if kept:
                kept.add(suite, outcome)
            if outcome.difference:
                print(f"DIFFERENT {suite}: {describe(outcome.case)}: {outcome.difference}")
            if time.perf_counter() - shown > PROGRESS_SECONDS:
                shown = time.perf_counter()
                print(f"{done} of {len(left)} cases, {shown - started:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(f"{time.perf_counter() - started:.0f} s")
    return outcomes


def recall(job: Job, kept: record.Record | None, outcomes: Outcomes) -> bool:
    """Takes over what came of a job that was done before."""
    found = kept.find(*job[:2]) if kept else None
    if found:
        outcomes[job[0]].append(found)
    return found is not None


def what_is_compared() -> str:
    """Changes with the emulator, with the comparison and with its oracles."""
    folders = ("core", "games", "env", "cpu", "bindings")
    sources = [path for name in folders for path in (native_build.NATIVE / name).rglob("*.*")]
    modules = (environment_library, product_console, side_by_side, suites, vector_side_by_side)
    scripts = [Path(str(module.__file__)) for module in modules]
    built = Path(scanline.__file__).parent.glob("_native*.so")
    oracles = [f"{name} {importlib.metadata.version(name)}" for name in ("ale-py", "envpool")]
    abi = environment_library.SOURCE
    return record.fingerprint([*sources, *scripts, *built, abi], *oracles)


def main() -> int:
    options = arguments()
    chosen = [games.find(name).id for name in options.games]
    cases = {name: suites.cases(name, chosen, options.frames) for name in options.suites}
    if options.list:
        for name, members in cases.items():
            print(f"{name}: {len(members)} cases, {sum(c.frames for c in members)} frames")
        return 0
    for console in {options.console, "fast"} - {"product"}:
        environment_library.load(console)  # built once, before the processes start
    jobs = [(name, case, options.console) for name in cases for case in cases[name]]
    kept = record.Record(options.record, what_is_compared()) if options.record else None
    outcomes = watch(jobs, options.jobs, kept)
    lines = [report(suite, members) for suite, members in outcomes.items()]
    print("\n".join(lines))
    if options.summary:
        options.summary.write_text("\n".join(lines) + "\n")
    return min(99, sum(bool(o.difference) for members in outcomes.values() for o in members))


if __name__ == "__main__":
    sys.exit(main())
