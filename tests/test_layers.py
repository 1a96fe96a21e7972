"""The tree shows the architecture: modules import lower levels, headers folders above them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "scanline"
NATIVE = ROOT / "native"

# Modules of one level do not import each other; the first four rows are level 0 of the design.
LEVELS = [
    {"errors", "spans"},
    {
        *("stacks", "streams", "draws", "schedules", "protocols", "games"),
        *("processes", "queues", "returns"),
    },
    {"spaces"},
    {"records", "settings"},
    {"engines", "networks", "acting", "stores", "algorithms", "parameters", "reports"},
    {"samplers"},
    {"runners"},
    {"recipes", "evaluation"},
    {"training"},
    {"experiments", "benchmarks", "queue"},
    {"cli"},
    {"__main__", "__init__"},
]
LEVEL_OF = {name: level for level, names in enumerate(LEVELS) for name in names}
NATIVE_FOLDERS = [
    "core",
    "threads",
    "games",
    "env",
    "cpu",
    "cuda",
    "layers",
    "bindings",
    "tests",
    "bench",
]


def part_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def imported_parts(path: Path, text: str) -> set[str]:
    """Top-level parts of scanline that a module imports, wherever in the file."""
    package = ["scanline", *path.relative_to(SOURCE).parent.parts]
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            prefix = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*prefix, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {n.split(".")[1] for n in names if n.startswith("scanline.") and "." in n}
    return found & LEVEL_OF.keys()


def forbidden(part: str, imported: set[str]) -> set[str]:
    return {other for other in imported - {part} if LEVEL_OF[other] >= LEVEL_OF[part]}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_a_module_imports_only_lower_levels(path: Path) -> None:
    part = part_of(path)
    assert part in LEVEL_OF, f"{path} has no level: add it to LEVELS and to docs/design.md"
    wrong = forbidden(part, imported_parts(path, path.read_text()))
    assert not wrong, f"{path} may not import {sorted(wrong)}"


def test_an_upward_import_is_seen() -> None:
    path = SOURCE / "stores" / "rollout.py"
    for text in ("from ..samplers import x", "import scanline.networks", "from .. import runners"):
        assert forbidden("stores", imported_parts(path, text)), text
    assert not forbidden("stores", imported_parts(path, "from ..records import Slot"))


def includes(text: str) -> set[str]:
    """Folders named by quoted includes such as "../core/state.h" or "core/state.h"."""
    quoted = re.findall(r'#include "([^"]+)"', text)
    return {part for name in quoted for part in name.split("/")[:-1] if part in NATIVE_FOLDERS}


def wrong_includes(folder: str, folders: set[str]) -> set[str]:
    allowed = set(NATIVE_FOLDERS[: NATIVE_FOLDERS.index(folder) + 1])
    allowed -= {"cpu"} if folder == "cuda" else set()
    return folders - allowed


@pytest.mark.parametrize(
    "path",
    sorted(path for kind in ("*.h", "*.cpp", "*.cu") for path in NATIVE.rglob(kind)),
    ids=lambda p: p.name,
)
def test_a_header_includes_only_folders_above_it(path: Path) -> None:
    folder = path.relative_to(NATIVE).parts[0]
    wrong = wrong_includes(folder, includes(path.read_text()))
    assert not wrong, f"{path} may not include {sorted(wrong)}"


def test_a_downward_include_is_seen() -> None:
    assert wrong_includes("core", includes('#include "../games/table.h"'))
    assert wrong_includes("cuda", includes('#include "cpu/batch.h"'))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.name))
def test_a_file_opens_by_saying_what_it_is_and_stays_short(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), f"{path} has no opening docstring"
    assert len(text.splitlines()) <= 400, f"{path} holds more than one thing"
