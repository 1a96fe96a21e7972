"""Code for wider instructions is entered only where the processor has them.

A function that the compiler puts into several object files is kept once by the linker. If one of
these files was compiled for AVX2, every caller may get that copy, on any processor. So no weak
symbol of such a file may exist in a file that is compiled for all.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NM = shutil.which("nm")


def weak_symbols(path: Path) -> set[str]:
    """Names that the linker merges with those of other files."""
    assert NM is not None
    shown = subprocess.run([NM, str(path)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in shown.splitlines()]
    return {row[-1] for row in rows if len(row) == 3 and row[-2] in "WVu"}


def test_no_file_for_wider_instructions_shares_a_function_with_one_for_all() -> None:
    folders = ROOT.glob("build/cp*/CMakeFiles/scanline_env.dir")
    objects = [
        path
        for folder in folders
        for path in folder.rglob("*.o")
        if (ROOT / path.relative_to(folder)).with_suffix("").exists()  # not of an earlier build
    ]
    wide = [path for path in objects if "_avx2" in path.name]
    if NM is None or not wide:
        pytest.skip("needs nm and the object files of a build with AVX2")
    common = {name for path in objects if path not in wide for name in weak_symbols(path)}
    for path in wide:
        assert not weak_symbols(path) & common, path.name
