"""Builds the shared libraries that the comparisons load.

Takes a C++ source of this repository and macros; gives the path of the library. It is built again
when any native header is newer, so that a comparison never tests an old build.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
FLAGS = ["-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-shared", "-fPIC"]
# Linked with every source: what is no header of the console that products run.
COMMON = sorted((NATIVE / "env" / "translation").glob("*.cpp"))


def build(source: Path, name: str, macros: Mapping[str, str] | None = None) -> Path:
    """Compiles `source` to lib<name>.so unless that is newer than every header."""
    folder = Path(os.environ.get("SCANLINE_TEST_BUILD", ROOT / "build" / "conformance"))
    library = folder / f"lib{name}.so"
    newest = max(path.stat().st_mtime for path in [source, *COMMON, *NATIVE.rglob("*.h")])
    if library.exists() and library.stat().st_mtime >= newest:
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / library.name
        defines = [f"-D{key}={value}" for key, value in (macros or {}).items()]
        compiler = os.environ.get("CXX", "g++")
        sources = [str(path) for path in (source, *COMMON)]
        command = [compiler, *FLAGS, "-pthread", *defines, *sources, "-o", str(fresh)]
        subprocess.run(command, check=True)
        fresh.replace(library)
    return library
