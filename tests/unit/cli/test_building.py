"""Hot modules become the C that Cython alone makes of them, and go where they belong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy import compiled_loader
from ompy.cli import forms
from ompy.cli.build import build as build_in_place
from ompy.cli.building import cached, compiling, modules, progress
from ompy.cli.building.kept import UNUSED, KeptObjects
from ompy.cli.building.modules import (
    EVERYTHING,
    dotted,
    extension_sources,
    hot_modules,
    left_out_here,
    optimiser_of,
)
from ompy.cli.building.preparing import write_sources
from ompy.cli.building.processes import Forks, WorkFailed
from ompy.cli.hot import BINDINGS, BUSIEST, HOT, MODELS, OFTEN, SHARED, WORLDS

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[3]
NEEDS_COMPILER = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
# a typed memoryview; many declarations, without any
COMPARED = ("ompy/net/memory/ring", "ompy_components/pml/ob1/rendezvous/striping")
ONE = """
import sys
from pathlib import Path
from ompy.cli.building import translating
tree, path, target, alone = sys.argv[1:]
if alone == "alone":
    translating.hot_modules = lambda tree: []
made = translating.Translator(Path(tree))
if alone == "alone":
    made._with_views = {"ompy.net.memory.ring"}
made.translate(Path(path), Path(target))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree").resolve()
    roots = [ROOT / "core" / "ompy", ROOT / "components" / "ompy_components"]
    compiling.copy_tree(roots, folder)
    return folder


@pytest.fixture(scope="module")
def prepared(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared").resolve()
    write_sources(tree, folder)
    return folder


@pytest.mark.parametrize("name", COMPARED if THOROUGH else ())
def test_it_is_what_cython_makes_of_the_module_alone(
    name: str, tree: Path, prepared: Path, tmp_path: Path
) -> None:
    """Apart from what names and orders things: the same functions, importing the same."""
    texts = []
    for alone in ("alone", "together"):
        target = tmp_path / f"{alone}.c"
        path = prepared / f"{name}.py"
        words = [sys.executable, "-c", ONE, str(prepared), str(path), str(target), alone]
        environment = {**os.environ, "PYTHONPATH": f"{tree}:{os.environ.get('PYTHONPATH', '')}"}
        subprocess.run(words, check=True, env=environment)
        texts.append(target.read_text())
    for pattern in (r"__Pyx_Import(?:Function|Type)_\w+\([^;]*?\"[^;]*;", r"^static .*\) \{$"):
        alone, together = (
            sorted(re.sub(r"__pyx_t_\d+", "", found) for found in re.findall(pattern, text, re.M))
            for text in texts
        )
        assert alone
        assert alone == together


def test_the_modules_are_those_with_declarations(tree: Path) -> None:
    names = {dotted(tree, path) for path in hot_modules(tree)}
    assert {"ompy.net.memory.ring", "ompy_components.pml.ob1.sending"} <= names
    assert not {"ompy.raw", "ompy.data.borrowed"} & names


def test_each_module_that_is_named_is_there(tree: Path) -> None:
    assert HOT.keys() == {SHARED, *(dotted(tree, path) for path in hot_modules(tree))}
    assert optimiser_of("ompy.net.memory.ring") == BUSIEST
    assert optimiser_of("somebody.elses") == OFTEN


def test_no_other_module_has_the_name_of_one_that_writes_an_extension(tree: Path) -> None:
    """A name is all that tells them; another module of that name stopped the compilation."""
    found = extension_sources(tree)
    assert found
    for path in found:
        assert "def write_calls(" in path.read_text(), path


def test_models_and_what_drives_a_library_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EVERYTHING, raising=False)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    assert set(left_out_here()) == {*MODELS, *WORLDS, *BINDINGS["fabric"]}
    monkeypatch.setenv(EVERYTHING, "1")
    assert not left_out_here()
    monkeypatch.setenv(EVERYTHING, "0")
    monkeypatch.setattr("ctypes.util.find_library", lambda name: f"lib{name}.so.1")
    assert set(left_out_here()) == {*MODELS, *WORLDS} - {*BINDINGS["fabric"]}


def test_what_a_model_shares_with_a_library_is_compiled_where_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else what drives the library would ask for a compiled module that is not there."""
    monkeypatch.delenv(EVERYTHING, raising=False)
    monkeypatch.setattr(modules, "MODELS", ("one.", "both."))
    monkeypatch.setattr(modules, "WORLDS", ())
    monkeypatch.setattr(modules, "BINDINGS", {"here": ("both.", "two."), "missing": ("three.",)})
    monkeypatch.setattr("ctypes.util.find_library", lambda name: "so" if name == "here" else None)
    assert set(left_out_here()) == {"one.", "three."}


def test_nothing_that_is_always_compiled_needs_what_may_be_left_out(
    tree: Path, prepared: Path
) -> None:
    groups = {"models": MODELS, "worlds": WORLDS, **BINDINGS}
    names = {dotted(tree, path) for path in hot_modules(tree)}
    declared = {
        name: prepared.joinpath(*name.split(".")).with_suffix(".pxd").read_text() for name in names
    }
    for wanted in [(), *((group,) for group in groups)]:
        compiled = {one for group in wanted for one in groups[group]}
        others = {one for names in groups.values() for one in names}
        seldom = tuple(others - compiled)
        left_out = {name for name in names if f"{name}.".startswith(seldom)}
        assert len(left_out) > 10
        for name in names - left_out:
            needed = [other for other in seldom if other.rstrip(".") in declared[name]]
            assert not needed, f"{name}, where {wanted or 'no group'} is compiled"


def test_an_installation_says_what_of_it_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interpret(part: str) -> None:
        modules = {name: part not in name for name in HOT if name != SHARED}
        monkeypatch.setattr(forms, "hot_modules", lambda: modules)

    monkeypatch.setattr(forms.ompy, "PURE", False)
    interpret(".ofi.")
    assert re.fullmatch(r"compiled \((\d+) of (?!\1)\d+ modules\)", forms.described())
    assert "those of btl/ofi are interpreted: libfabric" in forms.advice()
    assert "model" not in forms.advice()
    assert forms.advice().endswith("`ompy build` compiles the rest")
    interpret(".usnic.")
    assert "the protocol models btl/usnic are interpreted" in forms.advice()
    assert "libfabric" not in forms.advice()
    interpret("nothing")
    assert not forms.advice()


def test_works_run_and_the_first_that_fails_is_told(tmp_path: Path) -> None:
    def work(name: str) -> None:
        (tmp_path / name).touch()

    def fail() -> None:
        print("half of it")
        raise ValueError("the other half")

    works = [(name, lambda name=name: work(name)) for name in "abcde"]
    assert sorted(Forks(2).run_in_forks(iter(works))) == list("abcde")
    assert {path.name for path in tmp_path.iterdir()} == set("abcde")
    with pytest.raises(WorkFailed, match=r"(?s)bad: .*half of it.*the other half"):
        list(Forks(2).run_in_forks(iter([*works, ("bad", fail)])))

    def refuse() -> None:
        raise compiling.CompilerError("cc: out of memory")

    with pytest.raises(WorkFailed, match=r"^worse: cc: out of memory$"):
        list(Forks(2).run_in_forks(iter([("worse", refuse)])))


@pytest.mark.parametrize("command", ["false", "no-such-compiler"])
def test_a_compiler_that_does_not_work(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(compiling.CompilerError, match=command):
        compiling.probe_compiler()


@pytest.mark.compiled
def test_a_pointer_of_another_type_is_an_error_with_every_compiler(tmp_path: Path) -> None:
    """GCC 14 takes none, so with an older one we must not: its wheels stayed interpreted."""
    source = tmp_path / "wrong.c"
    source.write_text("int f(int); int (*g)(int, int) = f;\n")
    with pytest.raises(compiling.CompilerError, match="incompatible"):
        compiling.compile_object(source, tmp_path / "wrong.o", "-O0")


def test_progress_is_told_where_there_is_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = tmp_path / "terminal"
    monkeypatch.setattr(progress, "TERMINAL", str(terminal))
    with progress.Progress("compiling two", 2) as shown:
        shown.show_step("ompy.first")
        shown.show_step("ompy.second")
    said = terminal.read_bytes().decode()
    assert "compiling two\n" in said
    assert "1 of 2: ompy.first" in said
    assert said.endswith("2 of 2: ompy.second\r\x1b[K")
    monkeypatch.setattr(progress, "TERMINAL", str(tmp_path / "no such folder" / "terminal"))
    with progress.Progress("compiling one", 1) as shown:
        shown.show_step("ompy.first")


def test_a_working_copy_is_not_compiled_in_place() -> None:
    """Nor is a tree on the Python path: extensions would hide its sources."""
    done = CliRunner().invoke(build_in_place)
    assert done.exit_code == 2
    assert "editable" in done.output
    assert "pip install ." in done.output


@NEEDS_COMPILER
def test_a_kept_build_is_taken(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def compile_all(
        tree: Path, target: Path, optimiser: str, without: tuple[str, ...], kept: Path
    ) -> None:
        calls.append(optimiser)
        made = target / "ompy" / f"made{compiling.suffix()}"
        made.parent.mkdir(parents=True)
        made.touch()

    monkeypatch.setattr(cached, "compile_all", compile_all)
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy)
    for _ in range(2):
        (made,) = cached.build_or_copy(copy, str(tmp_path / "kept"))
        assert made.parent == copy / "ompy"
    assert len(calls) == 1
    (copy / "ompy" / "raw.pxd").write_text("changed")
    cached.build_or_copy(copy, str(tmp_path / "kept"))
    assert len(calls) == 2


def small_tree(folder: Path) -> Path:
    """One module that is declared by hand."""
    package = folder / "ompy"
    package.mkdir(parents=True)
    (folder / "ompy_components").mkdir()
    (package / "__init__.py").touch()
    (package / "adding.py").write_text("def add(a, b):\n    return a + b\n")
    (package / "adding.pxd").write_text("cpdef long add(long a, long b)\n")
    return folder


@pytest.mark.nightly
@NEEDS_COMPILER
def test_the_shared_module_compiles_and_its_users_find_it(tmp_path: Path) -> None:
    """One module of a smaller tree, from its source to an import."""
    small = small_tree(tmp_path / "small")
    package = small / "ompy"
    loader = Path(compiled_loader.__file__)
    shutil.copy(loader, package)
    (package / "__init__.py").write_text(
        "from ompy import compiled_loader as c\nc.install_finder()\n"
    )
    files = compiling.compile_modules(small, small, "-O0")
    assert [path.name.partition(".")[0] for path in files] == ["compiled_modules"]
    code = (
        "from ompy import adding, compiled_loader;"
        "print(adding.add(2, 3), compiled_loader.is_compiled('ompy.adding'), adding.__file__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(small)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["5", "True", str(package / "adding.py")]
    assert list(os.listdir(small / "ompy")).count("adding.c") == 0


AGAIN = """
import os, sys
from pathlib import Path
from ompy.cli.building import compiling
os.umask(int(sys.argv[2]))
compiling.compile_modules(Path(sys.argv[1]), Path(sys.argv[1]), "-O0")
"""


@pytest.mark.skipif(not THOROUGH, reason="14 s: tools/nightly.py does it")
@NEEDS_COMPILER
def test_extensions_do_not_tell_where_and_when_they_were_made(tmp_path: Path) -> None:
    made = []
    for number, name in enumerate(("here", "in/another/place")):
        small = small_tree(tmp_path / name)
        words = [sys.executable, "-c", AGAIN, str(small), str(0o77 * number)]
        seed = {"PYTHONHASHSEED": str(number), "TMPDIR": str(tmp_path / name)}
        subprocess.run(words, check=True, env={**os.environ, **seed})
        made.append({path.name: path.read_bytes() for path in small.rglob("*.so")})
    assert len(made[0]) == 1
    assert made[0] == made[1]
    assert not any(str(tmp_path).encode() in text for text in made[0].values())


def test_kept_objects_are_found_by_what_they_were_made_from(tmp_path: Path) -> None:
    kept = KeptObjects(tmp_path / "kept", ["gcc", "-O1"])
    made, target = tmp_path / "made.o", tmp_path / "target.o"
    made.write_bytes(b"object")
    kept.keep(made, kept.key("source", "declarations"))
    assert not kept.copy_to(target, kept.key("source", "others"))
    assert kept.copy_to(target, kept.key("source", "declarations"))
    assert target.read_bytes() == b"object"
    other = KeptObjects(tmp_path / "kept", ["gcc", "-O2"])
    assert not other.copy_to(target, other.key("source", "declarations"))


def test_kept_objects_long_unused_are_removed(tmp_path: Path) -> None:
    kept = KeptObjects(tmp_path, ["gcc"])
    made = tmp_path / "made.o"
    made.write_bytes(b"object")
    kept.keep(made, "old", "new")
    past = time.time() - UNUSED - 1
    os.utime(tmp_path / "old", (past, past))
    KeptObjects(tmp_path, ["gcc"])
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "new").exists()


@NEEDS_COMPILER
def test_an_unchanged_module_is_taken_and_a_changed_one_compiled(tmp_path: Path) -> None:
    target = tmp_path / "ompy.one.o"
    compiled: list[str] = []

    def write(text: str) -> None:
        def writes(path: Path) -> None:
            compiled.append(text)
            path.write_text(f"int one(void) {{ return {text}; }}\n")

        compiling._through_c(writes, "ompy.one", target, "-O0", f"read {text}", tmp_path / "kept")

    write("1")
    first = target.read_bytes()
    target.unlink()
    write("1")
    assert compiled == ["1"]
    assert target.read_bytes() == first
    write("2")
    assert compiled == ["1", "2"]
    assert target.read_bytes() != first
