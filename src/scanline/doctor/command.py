"""`scanline doctor`: what this machine is, whether it computes right, and how fast.

Takes the words of a command line; prints tables, writes a report if asked, and gives an exit code:
1 where a check has failed. Knows the order of a visit; checks and figures are others'.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from .. import devices, engines, recipes
from ..devices import Device
from ..errors import UserError
from ..files import disk_errors, replace_file
from ..games import rom_path
from ..memory import in_words
from ..tables import Table
from .advice import Advice, advice
from .checks import Check, budget_check, engine_checks, in_place_check, recipe_checks
from .facts import facts

GAME = "pong"
_QUICK_RECIPES = ("paac", "a2c", "ppo", "vtrace", "dqn", "ga3c")
_QUICK_ENVS, _ENVS = (16, 64), (8, 32, 128, 256)
_QUICK_SECONDS, _SECONDS = 1.0, 3.0
"""Of one measured stretch."""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Tell what this machine is, check that it computes right, and measure how fast."""

    quick: bool = False
    """Six recipes and short measurements, under a minute; else all of them, some minutes."""
    json: Path | None = None
    """File for everything that was found, to attach to a report."""
    device: str = "auto"
    """What is checked: auto (cuda, else mps, else cpu), or any device of `train`."""


def run(words: list[str], program: str) -> int:
    """Visits the machine; 1 where a check has failed, else 0."""
    options = tyro.cli(DoctorOptions, args=words, prog=program)
    begun, device, game = time.perf_counter(), chosen_device(options.device), chosen_game()
    about = facts()
    print(_facts_table(about, device).text(), flush=True)
    found = [_told(each) for each in _checks(options, game, device)]
    sizes = (_QUICK_ENVS, _QUICK_SECONDS) if options.quick else (_ENVS, _SECONDS)
    measured = advice(game, device, *sizes)
    _print_advice(measured, game)
    failed = [check for check in found if check.status == "failed"]
    seconds = time.perf_counter() - begun
    if options.json is not None:
        _write(options.json, _record(options, about, device, found, measured) | {"game": game})
    print(f"\n{len(found)} checks, {len(failed)} failed, in {seconds:.0f} seconds.")
    for check in failed:
        print(f"FAILED {check.name}: {check.finding}.\n  Next: {check.next_step}.")
    return 1 if failed else 0


def chosen_device(name: str) -> Device:
    """The named device, or the first of cuda, mps and cpu that is there."""
    if name == "auto":
        name = next(each for each in ("cuda:0", "mps", "cpu") if devices.is_there(each))
    return Device(devices.resolved(name))


def chosen_game() -> str:
    """Pong, or without its ROM the toy game, which needs none."""
    try:
        rom_path(GAME)
        return GAME
    except UserError:
        return engines.TOY


def _checks(options: DoctorOptions, game: str, device: Device) -> Iterator[Check]:
    print("\nChecks", flush=True)
    step = "pip install 'scanline[atari]', or name a folder of ROMs in SCANLINE_ROMS"
    has_roms = game != engines.TOY
    found = "pong's is here" if has_roms else "none: recipes play the toy game, without pictures"
    yield Check("ROMs", "ok" if has_roms else "failed", found, "" if has_roms else step)
    for name in _QUICK_RECIPES if options.quick else _names():
        yield from recipe_checks(game, device, name)
    yield budget_check(game, device)
    if has_roms and not options.quick:
        yield from engine_checks(game)
        yield in_place_check(game, device)


def _names() -> list[str]:
    """All recipes; of those with variants, which differ in sizes alone, the first."""
    return [name for name in recipes.RECIPES if not name.startswith("cule-vtrace-")]


def _told(check: Check) -> Check:
    print(f"  {check.status:8}{check.name}: {check.finding}", flush=True)
    return check


def _facts_table(about: dict[str, Any], device: Device) -> Table:
    machine, torch_facts = about["machine"], about["torch"]
    cards = [f"{d['name']} {d['card']}, {in_words(d['memory_bytes'])}" for d in about["devices"]]
    memory = f"{in_words(machine['memory_bytes'])}, {in_words(machine['available_bytes'])} free"
    cuda = torch_facts["cuda_build"] and (
        f"{torch_facts['cuda_build']}, driver {torch_facts['cuda_driver'] or 'none'}"
    )
    rows = {
        "processor": f"{machine['processor']}, {machine['num_cores']} cores",
        "instructions": torch_facts["instructions"],
        "memory": memory,
        "system": machine["system"],
        "devices": "; ".join(cards) or "none besides the processor",
        "checked": device.name,
        "CUDA of PyTorch": cuda or "none",
        "OpenCL": ", ".join(about["opencl"]) or "none",
        "compiler": about["compiler"] or "none: torch.compile cannot work on a CPU",
        "ROMs": f"{about['roms']} games",
        **about["versions"],
    }
    return Table(title="This machine", columns=["", ""], rows=list(rows.items()), num_left=2)


def _print_advice(found: Advice, game: str) -> None:
    title = f"\nAgent steps per second on {game}, by environments: each part alone, and the run"
    columns = ["envs", "emulator", "acting", "learning", "run"]
    rows = [[int(value) for value in row.values()] for row in found.sizes]
    print(Table(title=title, columns=columns, rows=rows).text())
    measured = found.figures
    copies = measured["copy_bytes_per_second"]
    print(
        f"\nOne launch {measured['launch_seconds'] * 1e6:.1f} us, one result back "
        f"{measured['decision_seconds'] * 1e6:.0f} us; copies up {copies['up'] / 1e9:.1f} GB/s, "
        f"down {copies['down'] / 1e9:.1f} GB/s; one core plays "
        f"{measured['emulator_agent_steps_per_core_second']:,.0f} agent steps/s."
    )
    settings = " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in found.recommended.items()
    )
    print(f"A run is limited by {found.limit}. Recommended: {settings}")
    print("`scanline train RECIPE GAME --plan` tells what a run will take and reach.")


def _record(
    options: DoctorOptions, about: dict[str, Any], device: Device, found: list[Check], said: Advice
) -> dict[str, Any]:
    return {
        "format": 1,
        "quick": options.quick,
        "facts": about,
        "device": device.name,
        "checks": [dataclasses.asdict(check) for check in found],
        "advice": dataclasses.asdict(said),
    }


def _write(path: Path, record: dict[str, Any]) -> None:
    with disk_errors(f"the report {path}", "choose another place with --json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (json.dumps(record, indent=1) + "\n").encode())
    print(f"\nThe report is {path}")
