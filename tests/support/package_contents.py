"""What the built archives must hold: ``python tests/support/package_contents.py dist``."""

import email
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import onlooker

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "onlooker"
MORE_THAN_CODE = {
    "py.typed",
    "datasets/storms_6h.csv.gz",
    "datasets/README.md",
    "explorer/land/README.md",
    "explorer/land/land-110m.json.gz",
    "explorer/land/land-50m.json.gz",
    "explorer/web/page.html",
}


def shipped() -> set[str]:
    """Every file of the package that is not made by running it."""
    made = {".pyc", ".nbi", ".nbc"}
    files = (path for path in SOURCE.rglob("*") if path.is_file() and path.suffix not in made)
    return {path.relative_to(SOURCE).as_posix() for path in files}


def check_wheel(wheel: zipfile.ZipFile) -> None:
    """The package, all of it and nothing else, with the metadata of the project."""
    names = wheel.namelist()
    inside = {name.removeprefix("onlooker/") for name in names if ".dist-info/" not in name}
    assert inside == shipped(), inside ^ shipped()
    assert inside >= MORE_THAN_CODE, MORE_THAN_CODE - inside
    (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["Version"] == onlooker.__version__
    assert metadata["Requires-Python"] == project["requires-python"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert metadata.get_payload().startswith("# onlooker")


def check_source(archive: tarfile.TarFile) -> None:
    """All that is needed to test and document it."""
    names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    needed |= {f"src/onlooker/{name}" for name in shipped()}
    needed |= {"Makefile", "README.md", "CHANGELOG.md", "LICENSE", "requirements.lock", ".ci/run"}
    assert needed <= names, needed - names
    private = (".venv", ".git/", ".benchmarks", "run")
    assert not [name for name in names if name.startswith(private)]


if __name__ == "__main__":
    (wheel_file,) = Path(sys.argv[1]).glob("*.whl")
    (source_file,) = Path(sys.argv[1]).glob("*.tar.gz")
    with zipfile.ZipFile(wheel_file) as wheel:
        check_wheel(wheel)
    with tarfile.open(source_file) as archive:
        check_source(archive)
    print(f"{wheel_file.name} and {source_file.name} hold what they must")
