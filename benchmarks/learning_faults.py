"""Do the bounds of `make learning` catch faults? A recipe trained with a fault put in from outside.

    python benchmarks/learning_faults.py --out benchmarks/results/learning-faults.jsonl

Trains `vtrace` as `learning-bounds` does, once as it is and once per fault, each in this process,
and appends a row as soon as a run has ended; rows that are there are not measured again.

    sign      the policy's advantage has the wrong sign
    discount  1 - discount stands where the discount should
    padding   every frame counts as its game's first: the older planes of a stack are padding
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from scanline import returns, stacks, training
from scanline_lab.experiments.bounds import BOUNDS, Bound, holds
from scanline_lab.experiments.evidence import cell_of
from scanline_lab.experiments.over_queue import run_of

Patches = Mapping[str, tuple[Any, Any]]


def wrong_sign(trajectory: Any, *arguments: Any) -> returns.VTrace:
    right = _vtrace(trajectory, *arguments)
    return right._replace(advantage=-right.advantage)


def wrong_discount(trajectory: Any, value: Any, ratio: Any, discount: float, clips: Any) -> Any:
    return _vtrace(trajectory, value, ratio, 1.0 - discount, clips)


def all_first(planes: torch.Tensor, depth: torch.Tensor, padding: Any) -> torch.Tensor:
    return _seen(planes, torch.ones_like(depth), padding)


def seen_as_first(self: Any) -> torch.Tensor:
    return all_first(self._planes, self._depth, self._padding).flatten(0, 1)


_vtrace: Callable[..., returns.VTrace] = returns.vtrace
_seen = stacks._seen
FAULTS: Mapping[str, Patches] = {
    "none": {},
    "sign": {"vtrace": (returns, wrong_sign)},
    "discount": {"vtrace": (returns, wrong_discount)},
    "padding": {
        "_seen": (stacks, all_first),
        "observations": (stacks.ObservationView, seen_as_first),
    },
}


@contextmanager
def put_in(fault: str) -> Iterator[None]:
    patches = [mock.patch.object(where, name, new) for name, (where, new) in FAULTS[fault].items()]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        mock.patch.stopall()


def outcome(bound: Bound, fault: str, seed: int) -> dict[str, Any]:
    """The run of a bound with a fault, and whether the bound holds."""
    cell = cell_of(dataclasses.replace(bound.row(), seed=seed))
    plan = run_of(cell.settings).plan(live=False, tensorboard=False)
    with tempfile.TemporaryDirectory() as folder, put_in(fault):
        run = training.carry_out(plan, out=Path(folder) / "run", resume=False)
    if run.stop.kind == "signal":
        raise KeyboardInterrupt(run.stop.sentence)
    finding = holds(bound, {cell_of(bound.row()).name: {"score": run.score}})
    return {
        **{"recipe": bound.recipe, "fault": fault, "seed": seed, "agent_steps": run.agent_steps},
        **{"score": run.score, "at_least": bound.at_least, "holds": finding.holds},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    kept = options.out.read_text().splitlines() if options.out.exists() else []
    known = {(row["fault"], row["seed"]) for row in map(json.loads, kept)}
    for fault in options.faults:
        for seed in options.seeds:
            if (fault, seed) not in known:
                row = json.dumps(outcome(BOUNDS[0], fault, seed))
                print(row, flush=True)
                with options.out.open("a") as file:
                    file.write(row + "\n")


if __name__ == "__main__":
    main()
