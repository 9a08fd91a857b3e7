"""The command `ompy-info`, as a process of its own with distributions of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import ompy
import pytest

pytestmark = pytest.mark.proc

COMMAND = str(Path(sysconfig.get_path("scripts"), "ompy-info"))

COMPONENT = """
from ompy.frameworks.btl import API, BtlComponent
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter

class Pigeon(BtlComponent):
    name = "pigeon"
    version = "2.5"
    api = API
    parameters = (
        Parameter("flock", "int", 3, "How many fly at once.", level=1, unit="birds", minimum=1),
        Parameter("route", "string", "a:b", "Where they fly.", level=1),
        Parameter("crumbs", "size_t", 4096, "What they eat.", level=4, unit="bytes"),
        Parameter("rest", "bool", False, "Whether they sleep.", level=9),
    )

    def open(self, values):
        if values.flock > 100:
            raise NotAvailable("no pigeonry is that large")
        super().open(values)

COMPONENT = Pigeon()
"""


class Installed:
    """Distributions in a directory on the Python path, and the command run with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.install("ompy-btl-pigeon", "pigeon", "pigeon_post", COMPONENT)

    def install(self, distribution: str, name: str, module: str, source: str) -> None:
        info = self.path / f"{distribution.replace('-', '_')}-1.4.dist-info"
        info.mkdir()
        (self.path / f"{module}.py").write_text(source)
        files = {
            "METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.4\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "INSTALLER": "hand\n",
            "entry_points.txt": f"[ompy.btl]\n{name} = {module}:COMPONENT\n",
        }
        for file, text in files.items():
            (info / file).write_text(text)
        record = [f"{module}.py,,", *(f"{info.name}/{file},," for file in (*files, "RECORD"))]
        (info / "RECORD").write_text("\n".join(record) + "\n")

    @property
    def environ(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if "OMPY" not in key}
        path = os.pathsep.join([str(self.path), os.environ.get("PYTHONPATH", "")])
        return inherited | {"HOME": str(self.path), "PYTHONPATH": path}

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, COMMAND, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=self.environ | environ,
        )

    def lines(self, *arguments: str, **environ: str) -> list[str]:
        done = self.run(*arguments, **environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_the_default_listing(installed: Installed) -> None:
    lines = installed.lines()
    assert lines[0] == f"                 Package: ompy {ompy.__version__}"
    assert all(line[24:26] == ": " for line in lines)
    assert "                 MCA btl: pigeon (MCA v2.1.0, API v3.1.0, Component v2.5)" in lines
    frameworks = [line[:24].strip() for line in lines if line[:24].strip().startswith("MCA ")]
    assert sorted(set(frameworks)) == ["MCA bml", "MCA btl", "MCA coll", "MCA plm", "MCA pml"]


def test_a_broken_component_is_shown_as_broken(installed: Installed) -> None:
    installed.install("ompy-btl-raven", "raven", "raven_post", "import no_such_module_anywhere")
    reason = "ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    assert f"                 MCA btl: raven (broken) {reason}" in installed.lines()
    assert f'mca:btl:raven:failed:"broken {reason}"' in installed.lines("--parsable")
    row = next(line for line in installed.lines("--plugins") if " raven " in line)
    assert row.split(maxsplit=5) == ["btl", "raven", "ompy-btl-raven", "1.4", "broken", reason]


def test_a_module_of_ours_that_is_missing_is_broken_only(installed: Installed) -> None:
    info = installed.path / "ompy-9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy\nVersion: 9\n")
    (info / "entry_points.txt").write_text("[ompy.btl]\nvoid = ompy_components.no.such:COMPONENT\n")
    line = next(line for line in installed.lines() if "void" in line)
    assert line.endswith(
        "MCA btl: void (broken) ModuleNotFoundError: No module named 'ompy_components.no'"
    )


PRETTY = """\
                 MCA btl: pigeon (MCA v2.1.0, API v3.1.0, Component v2.5)
          MCA btl pigeon: ---------------------------------------------------
          MCA btl pigeon: parameter "btl_pigeon_flock" (current value: "7", data source: \
environment (OMPY_MCA_btl_pigeon_flock), level: 1 user/basic, type: int, unit: birds)
                          How many fly at once.
                          Valid values: at least 1
                          Shadows: "0x8" from file ({file}:1)
          MCA btl pigeon: parameter "btl_pigeon_route" (current value: "a:b", data source: \
default, level: 1 user/basic, type: string)
                          Where they fly.
2 more parameters at higher levels (--level 9 shows all)
"""

PARSABLE = """\
mca:btl:pigeon:version:"mca:2.1.0"
mca:btl:pigeon:version:"api:3.1.0"
mca:btl:pigeon:version:"component:2.5"
mca:btl:pigeon:param:btl_pigeon_flock:value:3
mca:btl:pigeon:param:btl_pigeon_flock:source:default
mca:btl:pigeon:param:btl_pigeon_flock:status:read-only
mca:btl:pigeon:param:btl_pigeon_flock:level:1
mca:btl:pigeon:param:btl_pigeon_flock:help:How many fly at once.
mca:btl:pigeon:param:btl_pigeon_flock:deprecated:no
mca:btl:pigeon:param:btl_pigeon_flock:type:int
mca:btl:pigeon:param:btl_pigeon_flock:unit:birds
mca:btl:pigeon:param:btl_pigeon_flock:disabled:false
mca:btl:pigeon:param:btl_pigeon_route:value:"a:b"
mca:btl:pigeon:param:btl_pigeon_route:source:default
"""


def test_parameters_for_people(installed: Installed) -> None:
    (installed.path / ".ompy").mkdir()
    file = installed.path / ".ompy" / "mca-params.conf"
    file.write_text("btl_pigeon_flock = 0x8\n")
    lines = installed.lines("--param", "btl", "pigeon", OMPY_MCA_btl_pigeon_flock="7")
    assert "\n".join(lines) + "\n" == PRETTY.format(file=file)


def test_parameters_for_programs(installed: Installed) -> None:
    lines = installed.lines("--param", "btl", "pigeon", "--parsable", "--level", "9")
    assert "\n".join(lines).startswith(PARSABLE)
    rest = "mca:btl:pigeon:param:btl_pigeon_rest:"
    assert [line.removeprefix(rest) for line in lines if line.startswith(rest + "enumer")] == [
        "enumerator:value:0:false",
        "enumerator:value:1:true",
    ]


def parameters(lines: list[str]) -> list[str]:
    return [line.split('"')[1] for line in lines if ': parameter "' in line]


def test_levels_choose_what_is_shown(installed: Installed) -> None:
    shown = {
        level: parameters(installed.lines("--param", "btl", "pigeon", "--level", level))
        for level in ("1", "4", "9")
    }
    assert [len(names) for names in shown.values()] == [2, 3, 4]
    assert "more parameter" not in "".join(installed.lines("--param", "btl", "pigeon", "-l", "9"))
    assert installed.run("--param", "btl", "pigeon", "--level", "10").returncode != 0


def test_base_all_and_groups_without_components(installed: Installed) -> None:
    nine = ("--level", "9")
    assert parameters(installed.lines("--param", "btl", "base", *nine)) == [
        "btl",
        "btl_base_verbose",
    ]
    assert parameters(installed.lines("--param", "mca", "base", *nine)) == ["mca_base_param_files"]
    assert "engine_base_loop" in parameters(installed.lines("--param", "engine", "all", *nine))
    everything = parameters(installed.lines("--all"))
    assert {"btl", "pml_base_verbose", "btl_pigeon_rest", "engine_base_spin_us"} <= set(everything)
    assert everything == parameters(installed.lines("--param", "all", "all", *nine))
    one = parameters(installed.lines("--param", "all", "pigeon"))
    assert one == ["btl_pigeon_flock", "btl_pigeon_route"]
    two = installed.lines("--param", "btl", "pigeon", "--param", "engine", "base", *nine)
    assert {"btl_pigeon_rest", "engine_base_loop"} <= set(parameters(two))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--param", "blt", "all"), "there is no framework blt; did you mean btl? (there are "),
        (("--param", "btl", "pidgeon"), "there is no btl component pidgeon; did you mean pigeon?"),
        (("--param", "all", "pidgeon"), "there is no component pidgeon; did you mean pigeon?"),
        (("--why", "pidgeon"), "nothing is called pidgeon; did you mean pigeon?"),
    ],
)
def test_what_is_unknown_is_an_error(
    installed: Installed, arguments: tuple[str, ...], message: str
) -> None:
    done = installed.run(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ompy-info: {message}")
    assert done.stdout == ""


@pytest.mark.parametrize("option", ["--mca", "-mca", "--gmca"])
def test_settings_are_those_a_job_would_have(installed: Installed, option: str) -> None:
    line = installed.lines(option, "btl_pigeon_flock", "2k", "--param", "btl", "pigeon")[2]
    assert '(current value: "2048", data source: command line (--mca btl_pigeon_flock 2k)' in line


def test_wrong_settings_end_the_command(installed: Installed) -> None:
    done = installed.run("--mca", "btl_pigeon_flok", "2", "--mca", "btl_pigeon_flock", "2x")
    assert done.returncode == 2
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first.endswith("there is no parameter btl_pigeon_flok; did you mean btl_pigeon_flock?")
    assert second.startswith(
        "ompy-info: --mca btl_pigeon_flock 2x: btl_pigeon_flock cannot be '2x'"
    )
    done = installed.run(OMPY_MCA_mca_base_param_files="/no/such/file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("there is no file /no/such/file\n")


def test_excluded_components_are_marked_and_not_imported(installed: Installed) -> None:
    (installed.path / "pigeon_post.py").write_text("raise SystemExit('imported')")
    lines = installed.lines("--mca", "btl", "^pigeon")
    reason = "excluded by btl = ^pigeon (--mca btl ^pigeon)"
    assert f"             MCA (-) btl: pigeon (blocked) {reason}" in lines


def test_plugins_are_opened_as_a_job_would(installed: Installed) -> None:
    row = next(line for line in installed.lines("--plugins") if "pigeon" in line)
    assert row.split() == ["btl", "pigeon", "ompy-btl-pigeon", "1.4", "opened"]
    flock = ("--mca", "btl_pigeon_flock", "101")
    row = next(line for line in installed.lines("--plugins", *flock) if "pigeon" in line)
    assert row.split(maxsplit=4)[4] == "not-available  no pigeonry is that large"
    lines = installed.lines("--plugins", "--parsable")
    key = "plugin:btl:pigeon:ompy-btl-pigeon:"
    assert [line.removeprefix(key) for line in lines if line.startswith(key)] == [
        "version:1.4",
        'target:"pigeon_post:COMPONENT"',
        "state:opened",
        "reason:",
    ]


def test_why_tells_winner_and_losers(installed: Installed) -> None:
    installed.install("zzz-pigeon", "pigeon", "other_pigeon", COMPONENT)
    assert installed.lines("--why", "pigeon") == [
        "component btl:pigeon",
        "  used  ompy-btl-pigeon 1.4  pigeon_post:COMPONENT   opened",
        "  lost  zzz-pigeon 1.4       other_pigeon:COMPONENT  "
        "shadowed: ompy-btl-pigeon 1.4 offers it too and comes first",
    ]
    assert installed.lines("--why", "btl:pigeon") == installed.lines("--why", "pigeon")
    arguments = ("--why", "btl_pigeon_flock", "--mca", "btl_pigeon_flock", "9")
    assert installed.lines(*arguments, OMPY_MCA_btl_pigeon_flock="8") == [
        "parameter btl_pigeon_flock",
        '  used  "9"  command line (--mca btl_pigeon_flock 9)',
        '  lost  "8"  environment (OMPY_MCA_btl_pigeon_flock)',
        '  lost  "3"  default',
    ]


def test_why_tells_of_what_was_asked_for_and_does_not_work(installed: Installed) -> None:
    installed.install("ompy-btl-raven", "raven", "raven_post", "import no_such_module_anywhere")
    done = installed.run("--why", "raven", "--mca", "btl", "raven")
    assert done.returncode == 1
    assert "component btl:raven (asked for by --mca btl raven) cannot be used" in done.stderr
    first, second, *traceback = done.stdout.splitlines()
    assert first == "component btl:raven"
    assert second.split()[:2] == ["lost", "ompy-btl-raven"]
    assert traceback[0] == "    Traceback (most recent call last):"


def test_nothing_is_coloured_or_wrapped_in_a_pipe(installed: Installed) -> None:
    for option in (["--all"], ["--plugins"], ["--why", "pigeon"]):
        assert "\x1b" not in installed.run(*option, COLUMNS="40").stdout
    assert max(map(len, installed.lines("--all", COLUMNS="40"))) > 100


def test_a_terminal_gets_colour_and_wrapped_lines(installed: Installed) -> None:
    import pty

    for arguments in (["--param", "btl", "base", "--level", "9"], ["--plugins"]):
        master, slave = pty.openpty()
        with subprocess.Popen(
            [sys.executable, COMMAND, *arguments],
            stdout=slave,
            env=installed.environ | {"COLUMNS": "80"},
        ) as process:
            os.close(slave)
            output = b""
            try:
                while data := os.read(master, 65536):
                    output += data
            except OSError:  # what Linux says when the other end is closed
                pass
        os.close(master)
        assert process.returncode == 0
        lines = output.decode().splitlines()
        if arguments == ["--plugins"]:
            assert "\x1b[32mopened\x1b[0m" in output.decode()
        else:
            assert max(map(len, lines)) <= 80
            assert "                          default, level: 2 user/detail, type: string)" in lines


def test_the_version(installed: Installed) -> None:
    assert installed.lines("--version") == [f"ompy v{ompy.__version__}"] == installed.lines("-V")
