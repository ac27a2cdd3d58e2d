"""What a user installs: a real wheel, built here, holds the four packages and the command."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

PACKAGES = ("protocol", "actors", "runtime", "conformance")


def build(root: Path, target: str, folder: Path) -> dict[str, str]:
    """Build a wheel with hatchling; its members by name, as text."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return build(root, "wheel", tmp_path_factory.mktemp("wheel"))


def member(wheel: dict[str, str], name: str) -> str:
    (text,) = (text for path, text in wheel.items() if path.endswith(f".dist-info/{name}"))
    return text


def test_the_wheel_holds_every_module_of_the_four_packages(
    root: Path, sources: list[Path], wheel: dict[str, str]
) -> None:
    modules = {name for name in wheel if name.endswith(".py")}
    assert modules == {file.relative_to(root).as_posix() for file in sources}


def test_the_wheel_holds_the_cases_and_profiles_of_the_conformance_kit(root: Path, wheel: dict[str, str]) -> None:
    kit = root / "conformance"
    data = {
        file.relative_to(root).as_posix()
        for pattern in ("cases/*/*.jsonl", "profiles/*.json")
        for file in kit.glob(pattern)
    }
    assert len(data) > 300
    assert data <= set(wheel)


def test_the_wheel_says_that_its_packages_are_typed(wheel: dict[str, str]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel)


def test_the_wheel_holds_nothing_beside_the_packages(wheel: dict[str, str]) -> None:
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_installs_the_command(wheel: dict[str, str]) -> None:
    points = ConfigParser()
    points.read_string(member(wheel, "entry_points.txt"))
    assert dict(points["console_scripts"]) == {
        "atomic": "runtime.main:main",
        "atomic-conformance": "conformance.start:main",
    }


def test_the_wheel_tells_its_name_its_pythons_and_its_licence(wheel: dict[str, str]) -> None:
    metadata = Parser().parsestr(member(wheel, "METADATA"))
    assert metadata["Name"] == "atomic-runtime"
    assert set(metadata["Requires-Python"].split(",")) == {">=3.11", "<3.14"}
    assert metadata["License-Expression"] == "MIT"
    assert member(wheel, "licenses/LICENSE").startswith("MIT License")


def test_every_dependency_is_capped_at_a_major(wheel: dict[str, str]) -> None:
    requirements = Parser().parsestr(member(wheel, "METADATA")).get_all("Requires-Dist") or []
    direct = [text for text in requirements if "extra ==" not in text]
    assert direct
    assert [text for text in direct if "<" not in text or ">=" not in text] == []


def test_an_editable_install_is_one_line_in_a_path_file(root: Path, tmp_path: Path) -> None:
    members = build(root, "wheel:editable", tmp_path)
    (lines,) = (text.splitlines() for name, text in members.items() if name.endswith(".pth"))
    assert [Path(line) for line in lines] == [root]
