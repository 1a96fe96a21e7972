"""The tree shows the architecture: modules import lower levels, headers folders above them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
NATIVE = ROOT / "native"

# Modules of one level do not import each other; rows up to `choices` are level 0 of the design.
# The lab stands above all of scanline, which therefore cannot see it.
LEVELS = [
    {"_native"},
    {"errors", "tables", "native_arrays", "simulated"},
    {"memory"},
    {"devices"},
    {
        *("stacks", "random", "schedules", "protocols", "games", "carried"),
        *("files", "processes", "threads", "returns", "addresses"),
    },
    {"spaces"},
    {"slots"},
    {"machine", "records", "settings", "rendezvous"},
    {"interfaces", "cluster"},
    {"choices"},
    {"engines", "networks", "acting", "stores", "algorithms", "parameters", "reports"},
    {"samplers", "envs"},
    {"runs"},
    {"runners"},
    {"recipes", "evaluation", "paces"},
    {"training"},
    {"timing"},
    {"doctor"},
    {"queue", "train_options", "command_options", "completion"},
    {"authoring"},
    {"cli"},
    {"__main__", "__init__"},
]
LAB_LEVELS = [{"hosts", "scale"}, {"benchmarks"}, {"experiments"}, {"__init__"}]
LEVEL_OF = {
    part: level
    for level, parts in enumerate(
        [{f"scanline.{name}" for name in names} for names in LEVELS]
        + [{f"scanline_lab.{name}" for name in names} for names in LAB_LEVELS]
    )
    for part in parts
}
PACKAGES = ("scanline", "scanline_lab")
NATIVE_FOLDERS = [
    "core",
    "threads",
    "games",
    "env",
    "cpu",
    "gpu",
    "layers",
    "learners",
    "bindings",
    "tests",
    "bench",
]


def part_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts[:2])


def imported_parts(path: Path, text: str) -> set[str]:
    """Parts of scanline and its lab that a module imports, wherever in the file."""
    package = path.relative_to(SOURCE).parent.parts
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            prefix = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*prefix, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {named_part(name) for name in names if name.split(".")[0] in PACKAGES}
    return found


def named_part(name: str) -> str:
    """The part that a dotted name lies in; a package itself is its `__init__`."""
    package, *inner = name.split(".")
    part = f"{package}.{inner[0]}" if inner else package
    return part if part in LEVEL_OF else f"{package}.__init__"


def forbidden(part: str, imported: set[str]) -> set[str]:
    return {other for other in imported - {part} if LEVEL_OF[other] >= LEVEL_OF[part]}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_a_module_imports_only_lower_levels(path: Path) -> None:
    part = part_of(path)
    assert part in LEVEL_OF, f"{path} has no level: add it to LEVELS and to docs/design.md"
    wrong = forbidden(part, imported_parts(path, path.read_text()))
    assert not wrong, f"{path} may not import {sorted(wrong)}"


def test_an_upward_import_is_seen() -> None:
    assert_seen(
        SOURCE / "scanline" / "stores" / "rollout.py",
        wrong=("from ..samplers import x", "import scanline.networks", "from .. import runners"),
        right=("from ..records import Slot", "from scanline import _native"),
    )


def test_scanline_does_not_see_its_lab() -> None:
    assert_seen(
        SOURCE / "scanline" / "cli.py",
        wrong=(
            *("import scanline_lab", "from scanline_lab import x"),
            "from scanline_lab.benchmarks import command",
        ),
        right=("from . import training",),
    )
    assert_seen(
        SOURCE / "scanline_lab" / "benchmarks" / "rows.py",
        wrong=("from ..experiments import frame", "from scanline_lab.experiments import frame"),
        right=("from scanline import training", "import scanline", "from .work import Work"),
    )


def assert_seen(path: Path, wrong: Sequence[str], right: Sequence[str]) -> None:
    for text in wrong:
        assert forbidden(part_of(path), imported_parts(path, text)), text
    for text in right:
        assert not forbidden(part_of(path), imported_parts(path, text)), text


def includes(text: str) -> set[str]:
    """Folders named by quoted includes such as "../core/state.h" or "core/state.h"."""
    quoted = re.findall(r'#include "([^"]+)"', text)
    return {part for name in quoted for part in name.split("/")[:-1] if part in NATIVE_FOLDERS}


def wrong_includes(folder: str, folders: set[str]) -> set[str]:
    allowed = set(NATIVE_FOLDERS[: NATIVE_FOLDERS.index(folder) + 1])
    allowed -= {"cpu"} if folder == "gpu" else set()
    return folders - allowed


@pytest.mark.parametrize(
    "path",
    sorted(
        path for kind in ("*.h", "*.inc", "*.cpp", "*.cu", "*.cl") for path in NATIVE.rglob(kind)
    ),
    ids=lambda p: p.name,
)
def test_a_header_includes_only_folders_above_it(path: Path) -> None:
    folder = path.relative_to(NATIVE).parts[0]
    wrong = wrong_includes(folder, includes(path.read_text()))
    assert not wrong, f"{path} may not include {sorted(wrong)}"


def test_a_downward_include_is_seen() -> None:
    assert wrong_includes("core", includes('#include "../games/table.h"'))
    assert wrong_includes("gpu", includes('#include "cpu/batch.h"'))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_a_file_opens_by_saying_what_it_is_and_stays_short(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), f"{path} has no opening docstring"
    assert len(text.splitlines()) <= 400, f"{path} holds more than one thing"
