"""The order of the rooms: each imports only rooms that stand before it, lazy imports included."""

import ast
from pathlib import Path

import onlooker

SOURCE = Path(onlooker.__file__).parent
ROOMS = """
    _version blocks checks files stopping warnings hyper geography progress compiled gibbs
    reading demonstrations datasets
    dynamics planning metrics worlds repertoire missing problem
    partitions inference runs
    prediction consensus diagnostics posterior sampling
    choosing defaults recognizer baselines anomaly
    findings
    plot experiments fitting explorer cli
""".split()  # noqa: SIM905


def is_type_checking(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def imported(node):
    """Modules that the code below `node` imports; what only a type checker reads is left out."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            yield child.module or ""
            for alias in child.names:  # public names stand for the rooms that they are from
                yield onlooker._HOME.get(alias.name, "") if child.module == "onlooker" else ""
                yield f"{child.module}.{alias.name}"
        yield from imported(child)


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def rooms_imported_by(source):
    names = [name.split(".") for name in imported(ast.parse(source))]
    return {parts[1] for parts in names if parts[0] == "onlooker" and len(parts) > 1} & known()


def known():
    return {room_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}


def upward():
    """Pairs of a room and one that it imports although it stands after it."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        room = room_of(path)
        if room == "__init__":  # it loads public names when they are asked for
            continue
        for other in rooms_imported_by(path.read_text(encoding="utf-8")):
            if other not in ROOMS or room not in ROOMS:
                continue
            if ROOMS.index(other) > ROOMS.index(room):
                found.add(f"{path.relative_to(SOURCE)} {other}")
    return found


def test_every_room_has_its_place_in_the_order():
    assert known() - set(ROOMS) == set()


def test_no_import_points_up():
    assert upward() == set()


def test_a_lazy_import_counts_and_one_for_type_checkers_does_not():
    lazy = "def f():\n    from onlooker.cli import main\n"
    checked = "if TYPE_CHECKING:\n    from onlooker.cli import main\n"
    assert rooms_imported_by(lazy) == {"cli"}
    assert rooms_imported_by(checked) == set()
    assert rooms_imported_by("from onlooker import cli") == {"cli"}
    assert rooms_imported_by("from onlooker import sample") == {"sampling"}


def test_few_private_files_stand_at_the_root():
    private = [path.name for path in SOURCE.glob("_*.py") if path.name != "__init__.py"]
    assert len(private) <= 3
