"""What the shells are told, asked as click's scripts ask; one real shell is asked, too."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli import info, main, run
from ompy.cli.completing import completion_scripts
from ompy.cli.completing.completion_run import completions
from ompy.mca.parameter import TYPES

from tests.support.installed import COMPONENT, Installed

SCRIPTS = Path(sysconfig.get_path("scripts"))
SHELLS = ("bash", "zsh", "fish")
Ask = Callable[..., list[str]]


def environment(shell: str, program: str, line: str) -> dict[str, str]:
    """What the script of `shell` sets when TAB is pressed at the end of `line`."""
    words = shlex.split(line)
    incomplete = "" if line.endswith(" ") else words[-1]
    name = f"_{program.replace('-', '_').upper()}_COMPLETE"
    if shell == "fish":
        return {name: "fish_complete", "COMP_WORDS": line, "COMP_CWORD": incomplete}
    separator = "\n" if shell == "bash" else " "
    place = len(words) - (0 if line.endswith(" ") else 1)
    joined = separator.join(line.split(" "))
    return {name: f"{shell}_complete", "COMP_WORDS": joined, "COMP_CWORD": str(place)}


def values(shell: str, answer: str) -> list[str]:
    """The words a shell would offer; `<file>` where it lists files itself."""
    if shell == "zsh":
        lines = answer.strip().splitlines()
        pairs = list(zip(lines[::3], lines[1::3], strict=True))
    else:
        pairs = [(kind, value) for kind, _, value in (x.partition(",") for x in answer.split("\n"))]
        pairs = [pair for pair in pairs if pair[0]]
    plain = [
        value.partition("\t")[0].replace("\\:", ":") for kind, value in pairs if kind == "plain"
    ]
    return plain + [f"<{kind}>" for kind, _ in pairs if kind != "plain"]


@pytest.fixture(params=SHELLS)
def ask(
    request: pytest.FixtureRequest,
    installed: Installed,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Ask:
    """Press TAB at the end of a line."""
    shell = request.param

    def press(line: str, **environ: str) -> list[str]:
        program = line.split(maxsplit=1)[0]
        with monkeypatch.context() as context:
            for name, value in (environment(shell, program, line) | environ).items():
                context.setenv(name, value)
            entry = {"ompy-info": info.main, "ompy-run": run.main, "ompy": main.main}[program]
            try:
                code = entry() if program != "ompy" else entry(prog_name="ompy")
            except SystemExit as end:
                code = end.code
        out, err = capfd.readouterr()
        assert (code, err) == (0, "")
        return values(shell, out)

    return press


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ompy-info --param bt", ["btl"]),
        ("ompy-info --param btl pi", ["pigeon"]),
        ("ompy-info --params all ba", ["base", "basic"]),
        ("ompy-info --level 9 --param pml o", ["ob1"]),
        ("ompy-info --mca btl_pigeon_r", ["btl_pigeon_route", "btl_pigeon_rest"]),
        ("ompy-info --mca bt", ["btl", "btl_"]),
        ("ompy-info --mca btl self,pi", ["self,pigeon"]),
        ("ompy-info --mca btl ^pi", ["^pigeon"]),
        ("ompy-info --mca btl ^pigeon,sel", ["^pigeon,self"]),
        ("ompy-info --mca btl_pigeon_rest ", ["false", "true"]),
        ("ompy-info --mca btl_base_verbose w", ["warn"]),
        ("ompy-info --mca engine_base_loop uv", ["uvloop"]),
        ("ompy-info --mca btl_pigeon_route ", []),
        ("ompy-info --mca no_such ", []),
        ("ompy-info --type uint", ["uint32_t", "uint64_t"]),
        ("ompy-info --level 9 -t ver", ["version_string"]),
        ("ompy-info -l 9", ["9"]),
        ("ompy-info --path sys", ["sysconfdir"]),
        ("ompy-info --color a", ["auto", "always"]),
        ("ompy-info --why btl_pigeon_c", ["btl_pigeon_crumbs"]),
        ("ompy-info --why pig", ["pigeon"]),
        ("ompy-info --am scar", ["scarce"]),
        ("ompy-info --am scarce,tcp-", ["scarce,tcp-only"]),
        ("ompy-info --tune nowhere/", ["<file>"]),
        ("ompy-info --show", ["--show-failed"]),
        ("ompy-run -np 4 -mca btl pi", ["pigeon"]),
        ("ompy-run -n4 --gmca btl_pigeon_f", ["btl_pigeon_flock"]),
        ("ompy-run --tag-output --am scar", ["scarce"]),
        ("ompy-run -n 2 --wd", ["--wdir"]),
        ("ompy-run -wdir ", ["<dir>"]),
        ("ompy-run --stdin n", ["none"]),
        ("ompy-run -x HOM", ["HOME"]),
        ("ompy-run -n 2 ./prog", ["<file>"]),
        ("ompy-run -n 2 python prog", ["<file>"]),
        ("ompy-run -n 2 python app.py --mca btl ", ["<file>"]),
        ("ompy-run -n 1 python a.py : -n 1 --mca pml o", ["ob1"]),
        ("ompy-run --nonsense --mca pml o", ["ob1"]),
        ("ompy be", ["bench"]),
        ("ompy bench lat", ["latency"]),
        ("ompy bench latency --mca btl pi", ["pigeon"]),
        ("ompy completion f", ["fish"]),
    ],
)
def test_words(ask: Ask, line: str, expected: list[str]) -> None:
    found = ask(line)
    if line.endswith("--mca bt"):
        assert found[0] == "btl"
        assert all(word.startswith("btl_") for word in found[1:])
        assert {"btl_base_verbose", "btl_tcp_if_include", "btl_pigeon_flock"} <= set(found)
    else:
        assert found == expected


def test_options(ask: Ask) -> None:
    offered = ask("ompy-run --")
    assert {"--mca", "--tune", "--am", "--timeout", "--tag-output"} <= set(offered)
    assert "--allow-run-as-root" not in offered, "it is hidden"
    assert set(ask("ompy-info --type ")) == set(TYPES)


def test_what_cannot_be_set_is_not_offered_to_be_set(ask: Ask) -> None:
    assert ask("ompy-info --mca mca_base_override") == []
    assert ask("ompy-info --why mca_base_override") == ["mca_base_override_param_file"]


def test_excluded_packages_are_not_imported(
    ask: Ask, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch = "import pathlib; pathlib.Path('imported').touch()"
    installed.install("ompy-btl-raven", "raven", "raven_post", touch)
    monkeypatch.chdir(installed.path)
    assert "btl_tcp_linger_ms" in ask("ompy-info --mca btl_", OMPY_MCA_btl="^raven")
    assert "btl_tcp_linger_ms" in ask("ompy-info --mca btl ^raven --mca btl_")
    assert "raven" in ask("ompy-info --mca btl r", OMPY_MCA_btl="^raven")
    assert not Path("imported").exists()
    ask("ompy-info --mca btl_")
    assert Path("imported").exists()


def test_noise_and_wrong_settings_do_not_matter(ask: Ask, installed: Installed) -> None:
    noisy = "import sys; print('hello'); print('there', file=sys.stderr)\n"
    source = COMPONENT.replace('"pigeon"', '"raven"').replace("dove", "rook")
    installed.install("ompy-btl-raven", "raven", "raven_post", noisy + source)
    environ = {"OMPY_MCA_btl_raven_flock": "many", "OMPY_MCA_btl_base_verbose": "component"}
    (installed.path / ".ompy").mkdir()
    (installed.path / ".ompy" / "mca-params.conf").write_text("nonsense\n")
    assert ask("ompy-info --mca btl_raven_f", **environ) == ["btl_raven_flock"]


def test_files_beside_sets(ask: Ask, installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(installed.path)
    for name in ("scare.conf", "scare.txt"):
        (installed.path / name).write_text("")
    assert ask("ompy-run --tune sca") == ["scarce", "scare.conf"]
    assert ask("ompy-run --tune ./scare.t") == ["<file>"]
    assert ask("ompy-run --tune scarce,./scare.t") == ["scarce,./scare.txt"]


def test_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, mode in (("solver", 0o755), ("solver.txt", 0o644)):
        (tmp_path / "bin" / name).touch(mode)
    (tmp_path / "solve.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"/no/such/directory{os.pathsep}{tmp_path / 'bin'}")
    assert [item.value for item in completions(["-n", "2"], "sol")] == ["solve.py", "solver"]
    assert [item.type for item in completions(["-n", "2"], "")] == ["file"]
    assert [item.type for item in completions(["--", "./x"], "")] == ["file"]


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        (["--stdin", "="], "n", "none"),
        (["--stdin"], "=", "none"),
        ([], "--stdin=n", "--stdin=none"),
    ],
)
def test_values_behind_an_equals_sign(words: list[str], incomplete: str, expected: str) -> None:
    assert expected in [item.value for item in completions(words, incomplete)]


def test_what_no_script_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in ("tcsh_complete", "bash_dance", ""):
        monkeypatch.setenv("_OMPY_RUN_COMPLETE", asked)
        assert run.main() == 1
        monkeypatch.delenv("_OMPY_RUN_COMPLETE")
        monkeypatch.setenv("_OMPY_INFO_COMPLETE", asked)
        assert info.main() == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_say_what_to_do_with_them(shell: str) -> None:
    shown = CliRunner().invoke(completion_scripts.completion, [shell])
    assert shown.exit_code == 0
    comment = re.match(r"(?:#.*\n)+", shown.stdout)
    assert comment is not None
    assert f"ompy completion {shell}" in comment[0]
    for command in completion_scripts.COMMANDS:
        assert f"_{command.replace('-', '_').upper()}_COMPLETE={shell}_complete" in shown.stdout


@pytest.mark.proc
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ompy-info --param btl pi", "pigeon"),
        ("ompy-info --mca btl self,pi", "self,pigeon"),
        ("ompy-run -np 2 --mca engine_base_loop uv", "uvloop"),
        ("ompy ben", "bench"),
    ],
)
def test_a_real_bash(installed: Installed, line: str, expected: str) -> None:
    script = f"""
        eval "$(ompy completion bash)"
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        complete -p "${{COMP_WORDS[0]}}" | sed 's/.* -F //; s/ .*//' > function
        "$(cat function)" "${{COMP_WORDS[0]}}" "${{COMP_WORDS[COMP_CWORD]}}"
        echo "${{COMPREPLY[*]}}"
    """
    path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=installed.path,
        env=installed.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")
