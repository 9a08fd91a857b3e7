"""What `ompy-info` shows of installed packages and real settings, and how it ends."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import ompy
import pytest

from tests.support.info_document import validate
from tests.support.installed import COMPONENT, Installed
from tests.unit.cli.conftest import Info

LEVEL_NINE = ("--level", "9")


def parameters(lines: list[str]) -> list[str]:
    return [line.split('"')[1] for line in lines if ': parameter "' in line]


def test_the_default_listing(info: Info) -> None:
    lines = info().lines
    assert lines[0] == f"                 Package: ompy {ompy.__version__}"
    assert all(line[24:26] == ": " for line in lines)
    assert "                 MCA btl: pigeon (MCA v2.1.0, API v3.1.0, Component v2.5)" in lines
    frameworks = {line[:24].strip() for line in lines if line[:24].strip().startswith("MCA ")}
    assert frameworks >= {"MCA bml", "MCA btl", "MCA coll", "MCA plm", "MCA pml"}


def test_what_failed_is_listed(info: Info, installed: Installed) -> None:
    installed.install("ompy-btl-raven", "raven", "raven_post", "import no_such_module_anywhere")
    reason = "ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    assert f"                 MCA btl: raven (failed to load) {reason}" in info().lines
    assert f'mca:btl:raven:failed:"{reason}"' in info("--parsable").lines
    row = next(line for line in info("--plugins").lines if " raven " in line)
    file = f"{installed.path}/raven_post.py"
    assert row.split(maxsplit=6) == [
        *("btl", "raven", "ompy-btl-raven", "1.4", file, "broken", reason)
    ]


@pytest.mark.parametrize("width", ["", "120", "80", "40"])
def test_plugins_fit_the_terminal(info: Info, installed: Installed, width: str) -> None:
    """What there is no room for is below, or in another form, never cut."""
    installed.install("ompy-btl-raven", "raven", "raven_post", "import no_such_module_anywhere")
    shown = info("--plugins", COLUMNS=width)
    assert shown.code == 0
    assert max(map(len, shown.lines)) <= int(width or 80)
    text = "".join("".join(shown.lines).split())
    for word in ("raven", "ompy-btl-raven", "broken", "Nomodulenamed'no_such_module_anywhere'"):
        assert word in text
    assert "files:ompy-info--plugins--parsable" in text
    file = f"file:{installed.path}/raven_post.py"
    assert any(line.endswith(file) for line in info("--plugins", "--parsable").lines)


def test_a_module_of_ours_that_is_missing_is_only_listed(info: Info, installed: Installed) -> None:
    made = installed.path / "ompy-9.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy\nVersion: 9\n")
    (made / "entry_points.txt").write_text("[ompy.btl]\nvoid = ompy_components.no.such:COMPONENT\n")
    line = next(line for line in info().lines if "void" in line)
    assert line.endswith(
        "MCA btl: void (failed to load) ModuleNotFoundError: No module named 'ompy_components.no'"
    )


def test_show_failed_finds_what_fails_later_or_belongs_to_no_framework(
    info: Info, installed: Installed
) -> None:
    falls = COMPONENT.replace('raise NotAvailable("no', 'raise ValueError("no').replace("> 100", "")
    falls = falls.replace('name = "pigeon"', 'name = "raven"').replace("dove", "rook")
    installed.install("ompy-btl-raven", "raven", "raven_post", falls)
    installed.install("ompy-hooks-owl", "owl", "owl_post", "import no_such_owl", "ompy.hooks")
    torn = installed.path / "torn-1.dist-info"
    torn.mkdir()
    (torn / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1\n")
    (torn / "entry_points.txt").write_text("[ompy.btl]\nnot an entry point\n")
    assert not [line for line in info().lines if "failed to open" in line or "torn" in line]
    text = info("--show-failed").out
    assert "raven (failed to open) ValueError: no pigeonry is that large" in text
    assert '    raise ValueError("no pigeonry is that large")\n' in text
    assert "owl (failed to load) ModuleNotFoundError: No module named 'no_such_owl'" in text
    assert "MCA ?: ? (failed to load) its entry_points.txt cannot be understood" in text


PRETTY = """\
                 MCA btl: pigeon (MCA v2.1.0, API v3.1.0, Component v2.5)
          MCA btl pigeon: ---------------------------------------------------
          MCA btl pigeon: parameter "btl_pigeon_flock" (current value: "7", data source: \
environment (OMPY_MCA_btl_pigeon_flock), level: 1 user/basic, type: int, unit: birds, \
synonyms: btl_dove_flock)
                          How many fly at once.
                          Valid values: at least 1
                          Shadows: "0x8" from file ({file}:1)
          MCA btl pigeon: parameter "btl_dove_flock" (current value: "7", data source: \
environment (OMPY_MCA_btl_pigeon_flock), level: 1 user/basic, type: int, unit: birds, \
deprecated, synonym of: btl_pigeon_flock)
                          How many fly at once.
                          Valid values: at least 1
          MCA btl pigeon: parameter "btl_pigeon_route" (current value: "a:b", data source: \
default, level: 1 user/basic, type: string)
                          Where they fly.
          MCA btl pigeon: 2 more parameters at higher levels (--level 9 shows all)
"""


def test_values_come_from_where_a_job_has_them(info: Info, installed: Installed) -> None:
    (installed.path / ".ompy").mkdir()
    file = installed.path / ".ompy" / "mca-params.conf"
    file.write_text("btl_pigeon_flock = 0x8\n")
    shown = info("--param", "btl", "pigeon", OMPY_MCA_btl_pigeon_flock="7")
    assert shown.out == PRETTY.format(file=file)


def test_levels_choose_what_is_shown(info: Info) -> None:
    shown = {
        level: parameters(info("--param", "btl", "pigeon", "--level", level).lines)
        for level in ("1", "4", "9")
    }
    assert [len(names) for names in shown.values()] == [3, 4, 5]
    assert "more parameter" not in "".join(info("--param", "btl", "pigeon", "-l", "9").lines)


def test_base_all_and_groups_without_components(info: Info) -> None:
    assert parameters(info("--param", "btl", "base", *LEVEL_NINE).lines) == [
        "btl",
        "btl_base_verbose",
        "btl_base_seal",
        "btl_base_probe_interval_ms",
        "btl_base_probe_timeout_ms",
        "btl_base_probe_patience_ms",
        "btl_base_heal_answers",
        "btl_base_heal_pause_max_ms",
        "btl_base_heal_hold_ms",
        "btl_base_heal_hold_max_ms",
        "btl_base_heal_decay_ms",
    ]
    assert "mca_base_param_files" in parameters(info("--param", "mca", "base", "-l9").lines)
    assert "engine_base_loop" in parameters(info("--param", "engine", "all", "-l9").lines)
    everything = parameters(info("--all").lines)
    assert {"btl", "pml_base_verbose", "btl_pigeon_rest", "engine_base_spin_us"} <= set(everything)
    assert everything == parameters(info("--param", "all", "all", *LEVEL_NINE).lines)
    one = parameters(info("--param", "all", "pigeon").lines)
    assert one == ["btl_pigeon_flock", "btl_dove_flock", "btl_pigeon_route"]
    two = info("--param", "btl", "pigeon", "--param", "engine", "base", *LEVEL_NINE).lines
    assert {"btl_pigeon_rest", "engine_base_loop"} <= set(parameters(two))


def test_the_name_of_an_alias_will_do(info: Info) -> None:
    assert info("--param", "btl", "vader", "-l9").lines == info("--param", "btl", "sm", "-l9").lines
    assert "component btl:sm" in info("--why", "vader").lines


def test_internal_parameters_are_shown_when_asked_for(info: Info) -> None:
    name = "btl_pigeon_major_version"
    assert name not in info("--param", "btl", "pigeon", *LEVEL_NINE).out
    shown = info("--param", "btl", "pigeon", *LEVEL_NINE, "--internal").out
    assert f'informational "{name}" (current value: "2"' in shown


def test_all_parameters_of_a_type(info: Info) -> None:
    lines = info("--type", "size_t", *LEVEL_NINE).lines
    assert {"btl_pigeon_crumbs", "btl_tcp_eager_limit"} <= set(parameters(lines))
    assert all("type: size_t" in line for line in lines if ': parameter "' in line)
    assert parameters(info("--type", "size_t").lines) == []
    both = info("--type", "size_t", "--type", "bool", *LEVEL_NINE).lines
    assert set(parameters(lines)) < set(parameters(both))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--param", "blt", "all"), "there is no framework blt; did you mean btl? (there are "),
        (("--param", "btl", "pidgeon"), "there is no btl component pidgeon; did you mean pigeon?"),
        (("--param", "all", "pidgeon"), "there is no component pidgeon; did you mean pigeon?"),
        (("--why", "pidgeon"), "nothing is called pidgeon; did you mean pigeon?"),
        (("--why", "btl_pigeon_flok"), "nothing is called btl_pigeon_flok; did you mean btl_pige"),
        (("--type", "integer"), "there is no type integer; did you mean "),
        (("--type", "quaternion"), "there is no type quaternion (there are int, unsigned_int, "),
        (("--level", "10", "--all"), "there is no level 10 (there are 1 for users to 9 for dev"),
        (("--level", "0"), "there is no level 0"),
        (
            ("--path", "bindr"),
            "there is no path bindr; did you mean bindir?\nUsage: ompy-info --path TYPE",
        ),
    ],
)
def test_what_is_unknown_is_an_error(info: Info, arguments: tuple[str, ...], message: str) -> None:
    shown = info("--param", "btl", "all", *arguments)
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(f"ompy-info: error: {message}")


@pytest.mark.parametrize("arguments", [("--blue",), ("--level", "high"), ("--color", "red")])
def test_a_wrong_command_line(info: Info, arguments: tuple[str, ...]) -> None:
    shown = info(*arguments)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("ompy-info: error: ")
    assert shown.err.endswith("Try 'ompy-info --help'.\n")


@pytest.mark.parametrize("option", ["--mca", "-mca", "--gmca", "-gmca"])
def test_settings_are_those_a_job_would_have(info: Info, option: str) -> None:
    lines = info(option, "btl_pigeon_flock", "2k", "--param", "btl", "pigeon").lines
    source = "command line (--mca btl_pigeon_flock 2k)"
    assert f'(current value: "2048", data source: {source}' in lines[2]


def test_files_and_sets_are_read_first(info: Info, installed: Installed) -> None:
    for name, text in (("one", "-mca btl_pigeon_flock 5"), ("two", "btl_pigeon_route = x")):
        (installed.path / f"{name}.conf").write_text(text + "\n")
    one, two = installed.path / "one.conf", installed.path / "two.conf"
    text = info("--tune", str(one), "--tune", str(two), "--param", "btl", "pigeon").out
    assert f'current value: "5", data source: tune file ({one}:1)' in text
    assert f'current value: "x", data source: tune file ({two}:1)' in text
    text = info("-am", f"{two},scarce", "--param", "btl", "all", *LEVEL_NINE).out
    assert f'current value: "x", data source: parameter set ({two}:1)' in text
    assert 'parameter "btl_sm_ring_slots" (current value: "2", data source: parameter set (' in text


def test_strict_plugins(info: Info, installed: Installed) -> None:
    installed.install("ompy-btl-raven", "raven", "raven_post", "import no_such_module_anywhere")
    assert info().code == 0
    shown = info("--strict-plugins")
    assert shown.code == 1
    assert "raven" in shown.err
    assert "Package: ompy" in shown.out, "nothing is wrong with the settings"


def test_strict_plugins_that_fail_when_they_are_opened(info: Info, installed: Installed) -> None:
    source = COMPONENT.replace("raise NotAvailable(", "raise ValueError(").replace("> 100", "< 100")
    source = source.replace("pigeon", "raven").replace("dove", "crow")
    installed.install("ompy-btl-raven", "raven", "raven_post", source)
    assert info("--plugins").code == 0
    shown = info("--plugins", "--strict-plugins")
    assert shown.code == 1
    assert shown.err.startswith(
        "ompy-info: error: component btl:raven of ompy-btl-raven 1.4: open-failed (ValueError: no "
        "ravenry is that large), which --strict-plugins does not allow\nTraceback"
    )


def test_wrong_settings_end_the_command(info: Info) -> None:
    shown = info("--mca", "btl_pigeon_flok", "2", "--mca", "btl_pigeon_flock", "2x")
    assert (shown.code, shown.out) == (2, "")
    first, second = shown.err.splitlines()
    assert first.endswith("there is no parameter btl_pigeon_flok; did you mean btl_pigeon_flock?")
    assert second.startswith(
        "ompy-info: error: --mca btl_pigeon_flock 2x: btl_pigeon_flock cannot be '2x'"
    )
    shown = info("--all", OMPY_MCA_mca_base_param_files="/no/such/file")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.endswith("there is no file /no/such/file\n")


def test_wrong_settings_can_be_asked_about(info: Info, installed: Installed) -> None:
    (installed.path / ".ompy").mkdir()
    file = installed.path / ".ompy" / "mca-params.conf"
    file.write_text("nonsense\nbtl_pigeon_flock = 12xyz\nbtl_pigeon_flok = 1\n")
    shown = info("--why", "btl_pigeon_flock", "--why", "btl_pigeon_flok", "--plugins")
    assert shown.code == 2
    assert shown.err.splitlines()[0] == f"ompy-info: error: {file}:1: not `name = value`: nonsense"
    assert next(line for line in shown.out.splitlines() if "btl-pigeon" in line).endswith(" loaded")
    story = shown.out[shown.out.index("parameter btl_pigeon_flock\n") :].splitlines()
    assert story[1].split()[:4] == ["wrong", '"12xyz"', "file", f"({file}:2)"]
    assert story[2].split() == ["lost", '"3"', "default"]
    assert story[3] == "parameter btl_pigeon_flok"
    assert story[4].endswith(
        "there is no parameter btl_pigeon_flok; did you mean btl_pigeon_flock?"
    )
    document = json.loads(info("--json").out)
    validate(document)
    assert len(document["problems"]) == 3
    assert "components" not in document
    assert info("--path", "bindir", "--hostname").code == 0, "settings do not matter to it"
    assert info("--path", "bindir", "--param", "btl", "all").out.startswith(
        "                  Bind"
    )


def test_a_selection_that_cannot_be_understood(info: Info) -> None:
    shown = info("--why", "btl", "--mca", "btl", "tcp,^sm", "--parsable")
    assert shown.code == 2
    assert {"why:param:btl:0:verdict:wrong", "why:component:btl:tcp:0:verdict:lost"} <= set(
        shown.out.splitlines()
    )


def test_notices_are_warnings(info: Info) -> None:
    shown = info("--param", "btl", "pigeon", OMPY_MCA_btl_dove_flock="4")
    assert shown.code == 0
    assert shown.err == (
        "ompy-info: warning: environment variable OMPY_MCA_btl_dove_flock: btl_dove_flock is "
        "deprecated; its name is btl_pigeon_flock now\n"
    )
    assert 'current value: "4"' in shown.out


def test_an_excluded_package_is_not_imported(info: Info, installed: Installed) -> None:
    (installed.path / "pigeon_post.py").write_text("raise SystemExit('imported')")
    reason = "excluded by btl = ^pigeon (--mca btl ^pigeon)"
    shown = info("--mca", "btl", "^pigeon", "--all")
    assert f"             MCA (-) btl: pigeon (blocked) {reason}" in shown.lines
    lines = info("--mca", "btl", "^pigeon", "--parsable").lines
    assert f"mca:btl:pigeon:blocked:{reason}" in lines


def test_an_excluded_component_of_ours_is_shown_apart(info: Info) -> None:
    excluded = ("--mca", "btl", "^tcp", "--mca", "btl_tcp_eager_limit", "8k", "-l9")
    shown = info(*excluded, "--param", "btl", "all")
    assert shown.err == (
        "ompy-info: warning: --mca btl_tcp_eager_limit 8k: btl_tcp_eager_limit has no effect: "
        "btl:tcp is excluded by btl = ^tcp (--mca btl ^tcp)\n"
    )
    text = shown.out
    assert "             MCA (-) btl: tcp (MCA v2.1.0, API v3.1.0, Component v" in text
    assert '     MCA (-) btl tcp: parameter "btl_tcp_eager_limit" (current value: "8192"' in text
    lines = info(*excluded, "--parsable", "--param", "btl", "all").out.splitlines()
    assert "mca:btl:tcp:param:btl_tcp_eager_limit:disabled:true" in lines
    assert "mca:btl:sm:param:btl_sm_eager_limit:disabled:false" in lines
    rows = info(*excluded, "--plugins").out.splitlines()
    row = next(line for line in rows if " tcp " in line)
    assert row.split()[5] == "blocked", "the job's registry knows nothing of it"
    shown = info("--mca", "btl", "^tcp", "--mca", "btl_tcp_eager_limit", "much", "--all")
    assert shown.code == 0
    assert "warning: --mca btl_tcp_eager_limit much: " in shown.err
    assert shown.err.endswith("(its component is excluded)\n")


def test_a_job_that_could_not_start(info: Info) -> None:
    asked = ("--mca", "btl", "self,pigeon", "--mca", "btl_pigeon_flock", "101")
    for view in ("--plugins", "--selected-only"):
        shown = info(view, *asked)
        assert shown.code == 1
        assert shown.err == (
            "ompy-info: error: component btl:pigeon (asked for by --mca btl self,pigeon) cannot be "
            "used: no pigeonry is that large\n"
        )


def test_only_what_a_job_would_use(info: Info) -> None:
    lines = info("--selected-only", "--mca", "btl", "^tcp").lines
    shown = [line.split(": ")[1].split()[0] for line in lines if line.lstrip().startswith("MCA ")]
    assert {"pigeon", "sm", "self", "ob1", "r2"} <= set(shown)
    assert "tcp" not in shown
    lines = info("-s", "--mca", "btl_pigeon_flock", "101").lines
    assert not [line for line in lines if "pigeon" in line]
    settable = "mca:btl:base:param:btl:status:"
    assert settable + "writeable" in info("--param", "btl", "base", "-l9", "--parsable").lines
    assert settable + "read-only" in info("--param", "btl", "base", "-sl9", "--parsable").lines


def test_plugins_are_opened_as_a_job_would(info: Info, installed: Installed) -> None:
    row = next(line for line in info("--plugins").lines if "pigeon" in line)
    file = f"{installed.path}/pigeon_post.py"
    assert row.split() == ["btl", "pigeon", "ompy-btl-pigeon", "1.4", file, "opened"]
    flock = ("--mca", "btl_pigeon_flock", "101")
    row = next(line for line in info("--plugins", *flock).lines if "pigeon" in line)
    assert row.split(maxsplit=5)[5] == "not-available  no pigeonry is that large"
    lines = info("--plugins", "--parsable").lines
    key = "plugin:btl:pigeon:ompy-btl-pigeon:"
    assert [line.removeprefix(key) for line in lines if line.startswith(key)] == [
        "version:1.4",
        f"file:{file}",
        'target:"pigeon_post:COMPONENT"',
        "state:opened",
        "reason:",
    ]


RIVAL = """
from ompy.frameworks.pml import API, PmlComponent
from ompy.mca.parameter import Parameter

class Rival(PmlComponent):
    name = "rival"
    version = "1"
    api = API
    parameters = (Parameter("priority", "int", 99, "Rank.", level=9),)

COMPONENT = Rival()
"""


def test_the_best_pml_is_selected(info: Info, installed: Installed) -> None:
    installed.install("ompy-pml-rival", "rival", "rival_post", RIVAL, "ompy.pml")
    rows = {line.split()[1]: line.split(maxsplit=5) for line in info("--plugins").lines}
    assert rows["rival"][5] == "selected"
    words = rows["ob1"][5].split()
    assert " ".join(words) == "not-selected rival has the higher priority"
    assert " ob1" not in info("-s").out
    assert "lost" in info("--why", "ob1").out


def test_why_tells_winner_and_losers(info: Info, installed: Installed) -> None:
    installed.install("zzz-pigeon", "pigeon", "other_pigeon", COMPONENT)
    assert info("--why", "pigeon").lines == [
        "component btl:pigeon",
        '  selection  btl = ""  default',
        "  used  ompy-btl-pigeon 1.4  pigeon_post:COMPONENT   found, loaded, opened",
        "  lost  zzz-pigeon 1.4       other_pigeon:COMPONENT  "
        "found, shadowed: ompy-btl-pigeon 1.4 offers it too and comes first",
    ]
    assert info("--why", "btl:pigeon").lines == info("--why", "pigeon").lines
    arguments = ("--why", "btl_dove_flock", "--mca", "btl_pigeon_flock", "9")
    assert info(*arguments, OMPY_MCA_btl_pigeon_flock="8").lines == [
        "parameter btl_pigeon_flock, also called btl_dove_flock",
        '  used  "9"  command line (--mca btl_pigeon_flock 9)',
        '  lost  "8"  environment (OMPY_MCA_btl_pigeon_flock)',
        '  lost  "3"  default',
    ]


def test_why_tells_of_what_was_asked_for_and_does_not_work(
    info: Info, installed: Installed
) -> None:
    installed.install("ompy-btl-raven", "raven", "raven_post", "import no_such_module_anywhere")
    shown = info("--why", "raven", "--mca", "btl", "raven")
    assert shown.code == 1
    assert "component btl:raven (asked for by --mca btl raven) cannot be used" in shown.err
    first, second, third, *traceback = shown.out.splitlines()
    assert first == "component btl:raven"
    assert second == '  selection  btl = "raven"  command line (--mca btl raven)'
    assert third.split()[:2] == ["lost", "ompy-btl-raven"]
    assert traceback[-1] == f"    {third.split(': ', 1)[1]}"


def test_facts_of_the_installation_come_in_order(info: Info) -> None:
    lines = info("--config", "--hostname", "--arch", "--path", "bindir", "--path", "prefix").lines
    assert [line[:24].strip() for line in lines[:5]] == [
        *("Bindir", "Prefix", "Configured architecture", "Host", "Hot modules")
    ]
    paths = dict(line[5:].split(":", 1) for line in info("--path", "all", "--parsable").lines)
    assert len(paths) == 17
    assert Path(paths["bindir"], "ompy-info").exists()
    assert paths["pkglibdir"] == os.path.dirname(ompy.__file__)
    assert Path(paths["pkgdatadir"], "tcp-only.conf").exists()
    assert paths["sysconfdir"] == os.environ["OMPY_SYSCONFDIR"]
    config = "\n".join(info("--config").lines)
    assert "Library click: " in config
    assert "not installed" not in config.replace("Library numpy: not installed", "")


def test_versions_in_every_format(info: Info) -> None:
    assert info("--version").out == info("-V").out
    first, second, *rest = info("--version").lines
    assert first == f"ompy v{ompy.__version__}"
    form = re.fullmatch(r"Hot modules: (interpreted|compiled) \(.*modules\)", second)
    assert form
    assert bool(rest) == (form[1] == "interpreted" and not ompy.PURE)
    assert all("ten times as long" in line and "pip install ." in line for line in rest)
    assert info("--version", "--parsable").lines[1] == f"ompy:version:full:{ompy.__version__}"
    assert json.loads(info("-V", "--json").out)["ompy"]["version"] == ompy.__version__


def test_control_characters_are_shown_as_escapes(info: Info) -> None:
    given = ("--mca", "btl_pigeon_route", "\x1b[31m\nmca:x", "--param", "btl", "pigeon")
    assert '(current value: "\\x1b[31m\\nmca:x", ' in info(*given).out
    assert 'route:value:"\\x1b[31m\\nmca:x"\n' in info(*given, "--parsable").out


@pytest.mark.parametrize(
    ("arguments", "environ", "coloured"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {}, False),
        (("--color", "always", "--json"), {}, False),
    ],
)
def test_colour_when_it_is_asked_for(
    info: Info, arguments: tuple[str, ...], environ: dict[str, str], coloured: bool
) -> None:
    assert ("\x1b[32m" in info("--plugins", *arguments, **environ).out) is coloured
