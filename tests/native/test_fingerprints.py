"""Fingerprints name the sources that the compiled module was built from, wherever they lie."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scanline import _native, engines, networks

NATIVE = Path(__file__).resolve().parents[2] / "native"
FOLDERS = {"CORE_FINGERPRINT": ("core", "games", "env", "cpu"), "LAYERS_FINGERPRINT": ("layers",)}
CMAKE = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def by_definition(native: Path, name: str) -> str:
    folders = [native / folder for folder in FOLDERS[name]]
    kinds = {".h", ".inc", ".cpp"}
    files = [f for folder in folders for f in folder.rglob("*") if f.suffix in kinds]
    lines = [
        f"{file.relative_to(native).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}\n"
        for file in sorted(files, key=lambda file: file.relative_to(native).as_posix())
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def by_the_build(native: Path, out: Path) -> dict[str, str]:
    script = native / "fingerprints.cmake"
    command = [str(CMAKE), f"-DNATIVE={native}", f"-DOUT={out}", "-P", str(script)]
    subprocess.run(command, check=True, capture_output=True)
    return dict(re.findall(r'char (\w+)\[\] = "(\w+)"', out.read_text()))


def test_the_module_has_the_fingerprints_of_its_sources() -> None:
    assert by_definition(NATIVE, "CORE_FINGERPRINT") == _native.CORE_FINGERPRINT
    assert by_definition(NATIVE, "LAYERS_FINGERPRINT") == networks.FINGERPRINT
    assert engines.version("native") == f"native core {_native.CORE_FINGERPRINT}"


@pytest.mark.skipif(CMAKE is None, reason="the build's own script needs CMake")
def test_equal_sources_in_another_folder_are_equal_and_a_changed_one_is_seen(
    tmp_path: Path,
) -> None:
    copy = tmp_path / "elsewhere" / "native"
    shutil.copytree(NATIVE, copy)
    before = by_the_build(copy, tmp_path / "before.h")
    assert before == {name: by_definition(NATIVE, name) for name in FOLDERS}
    changed = copy / "core" / "state.h"
    changed.write_text(changed.read_text() + "// another line\n")
    after = by_the_build(copy, tmp_path / "after.h")
    assert after["CORE_FINGERPRINT"] != before["CORE_FINGERPRINT"]
    assert after["LAYERS_FINGERPRINT"] == before["LAYERS_FINGERPRINT"]
