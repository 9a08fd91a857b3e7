from __future__ import annotations

from pathlib import Path

import pytest
from ompy.mca.errors import UsageError
from ompy.mca.parameters.parameter_files import read_text
from ompy.mca.parameters.settings import Origin, Setting, default_files, gather_settings


def pairs(settings: list[Setting]) -> list[tuple[str, str, str]]:
    return [(setting.name, setting.raw, setting.origin.detail) for setting in settings]


def test_command_line_then_environment_then_files_left_most_first(tmp_path: Path) -> None:
    left, right = tmp_path / "left.conf", tmp_path / "right.conf"
    left.write_text("btl = left\n")
    right.write_text("btl = right\npml = ob1\n")
    settings = gather_settings(
        [("btl", "cli")], {"OMPY_MCA_btl": "env", "HOME": "/"}, [left, right]
    )
    assert pairs(settings) == [
        ("btl", "cli", "--mca btl cli"),
        ("btl", "env", "OMPY_MCA_btl"),
        ("btl", "left", f"{left}:1"),
        ("pml", "ob1", f"{right}:2"),
        ("btl", "right", f"{right}:1"),
    ]
    assert [setting.origin.source for setting in settings] == [
        "command line",
        "environment",
        "file",
        "file",
        "file",
    ]


def test_other_environment_variables_are_no_settings() -> None:
    environ = {"OMPY_MCAbtl": "x", "OMPI_MCA_btl": "x", "ompy_mca_btl": "x", "OMPY_MCA_Btl": "y"}
    assert pairs(gather_settings([], environ, [])) == [("Btl", "y", "OMPY_MCA_Btl")]


def test_a_name_with_two_values_on_the_command_line_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        gather_settings([("btl", "tcp"), ("pml", "ob1"), ("btl", "sm"), ("pml", "bfo")], {}, [])
    assert caught.value.exit_code == 2
    assert caught.value.problems == (
        "--mca btl tcp and --mca btl sm: btl can have one value on the command line",
        "--mca pml ob1 and --mca pml bfo: pml can have one value on the command line",
    )


def test_a_name_with_the_same_value_twice_is_one_setting() -> None:
    assert len(gather_settings([("btl", "tcp"), ("btl", "tcp")], {}, [])) == 1


def test_the_users_file_and_the_systems_are_read_by_default(tmp_path: Path) -> None:
    (tmp_path / ".ompy").mkdir()
    mine = tmp_path / ".ompy" / "mca-params.conf"
    mine.write_text("btl = self\n")
    assert default_files(str(tmp_path), {})[0] == str(mine)
    assert default_files("/h", {})[1] == "/h/.config/ompy/mca-params.conf"
    assert default_files("/h", {"XDG_CONFIG_HOME": "/x"})[1] == "/x/ompy/mca-params.conf"
    assert default_files("/h", {})[2].endswith("etc/ompy-mca-params.conf")
    assert default_files("/h", {"OMPY_SYSCONFDIR": "/s"})[2] == "/s/ompy-mca-params.conf"
    settings = gather_settings([], {"HOME": str(tmp_path)})
    assert ("btl", "self", f"{mine}:1") in pairs(settings)


def test_files_of_the_caller_that_do_not_exist_are_passed_over(tmp_path: Path) -> None:
    assert gather_settings([], {}, [tmp_path / "none.conf"]) == []


@pytest.mark.parametrize("where", ["command line", "environment"])
def test_files_the_user_names_replace_the_others(tmp_path: Path, where: str) -> None:
    given, named, second = (tmp_path / f"{name}.conf" for name in "abc")
    given.write_text("btl = given\n")
    named.write_text("btl = named\n")
    second.write_text("btl = second\n")
    value = f"~/b.conf , {second}"
    mca = [("mca_base_param_files", value)] if where == "command line" else []
    environ = {"HOME": str(tmp_path)}
    if not mca:
        environ["OMPY_MCA_mca_base_param_files"] = value
    raws = [
        setting.raw for setting in gather_settings(mca, environ, [given]) if setting.name == "btl"
    ]
    assert raws == ["named", "second"]


def test_the_word_none_disables_files(tmp_path: Path) -> None:
    given = tmp_path / "a.conf"
    given.write_text("btl = given\n")
    settings = gather_settings([("mca_base_param_files", "none")], {}, [given])
    assert [setting.name for setting in settings] == ["mca_base_param_files"]


def test_a_file_the_user_names_has_to_exist(tmp_path: Path) -> None:
    path = tmp_path / "none.conf"
    with pytest.raises(UsageError, match=r"^--mca mca_base_param_files .*: there is no file "):
        gather_settings([("mca_base_param_files", str(path))], {}, [])


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{tmp_path}: cannot be read: Is a directory"):
        gather_settings([], {}, [tmp_path])


def test_what_a_file_may_contain() -> None:
    text = """
# a comment
// another
btl = self,tcp
  btl_tcp_if_include=eth0
empty =
spaced   =   two words   \t
quoted = "stays" # and so does this
url = http://x/y
/* one line */ after = 1
/* several
lines = hidden
*/ behind = 2
/* a */ /* b */ twice = 3
"""
    problems: list[str] = []
    content = read_text(text, "f", problems)
    assert problems == []
    assert [(name, raw) for name, raw, _ in reversed(content.assignments)] == [
        ("btl", "self,tcp"),
        ("btl_tcp_if_include", "eth0"),
        ("empty", ""),
        ("spaced", "two words"),
        ("quoted", '"stays" # and so does this'),
        ("url", "http://x/y"),
        ("after", "1"),
        ("behind", "2"),
        ("twice", "3"),
    ]


def test_the_last_assignment_of_a_file_wins() -> None:
    assignments = read_text("a = 1\nb = 2\na = 3\n", "f", []).assignments
    assert [raw for name, raw, _ in assignments if name == "a"] == ["3", "1"]


@pytest.mark.parametrize("line", ["word", "= 1", "a b = 1", "a$ = 1"])
def test_lines_that_are_no_assignment_are_reported(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.conf"
    path.write_text(f"good = 1\n{line}\nbtl = tcp\n{line}\n")
    with pytest.raises(UsageError) as caught:
        gather_settings([], {}, [path])
    assert caught.value.problems == (
        f"{path}:2: not `name = value`: {line}",
        f"{path}:4: not `name = value`: {line}",
    )


def test_a_comment_without_end_is_reported_where_it_begins() -> None:
    problems: list[str] = []
    (only,) = read_text("a = 1\n/* b = 2\nc = 3\n", "f", problems).assignments
    assert only == ("a", "1", "f:1")
    assert problems == ["f:2: the comment that begins here has no end"]


def test_windows_line_ends_and_odd_bytes_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_bytes(b"a = 1\r\n# \xff\r\nb = 2\r\n")
    assert [s.raw for s in gather_settings([], {}, [path])] == ["2", "1"]


def test_an_origin_is_told_as_ompi_info_does() -> None:
    assert str(Origin("file", "/a:3")) == "file (/a:3)"
    assert str(Origin("default", "")) == "default"
    assert Origin("environment", "OMPY_MCA_btl").place == "environment variable OMPY_MCA_btl"


def test_options_in_a_file() -> None:
    problems: list[str] = []
    content = read_text(
        "-mca btl self,tcp --mca pml ob1 -x A=1\n-x 'B=two words' -x C\nbml = r2\n", "f", problems
    )
    assert problems == []
    assert content.assignments == [
        ("bml", "r2", "f:3"),
        ("pml", "ob1", "f:1"),
        ("btl", "self,tcp", "f:1"),
    ]
    assert content.exports == [("C", "f:2"), ("B=two words", "f:2"), ("A=1", "f:1")]


@pytest.mark.parametrize("line", ["-mca btl", "--mca b$l x", "-x", "-x =1", "-y 1", "-mca a b c"])
def test_options_that_are_none_are_reported(line: str) -> None:
    problems: list[str] = []
    read_text(line, "f", problems)
    assert problems == [f"f:1: not `-mca name value` or `-x VARIABLE=value`: {line}"]


def test_a_quotation_without_end_is_reported() -> None:
    problems: list[str] = []
    read_text("-x 'A=1", "f", problems)
    assert problems == ["f:1: no closing quotation: -x 'A=1"]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The working directory and a directory of parameter sets."""
    here, sets = tmp_path / "here", tmp_path / "sets"
    here.mkdir()
    sets.mkdir()
    monkeypatch.chdir(here)
    return here, sets


TUNE, AM = "mca_base_envar_file_prefix", "mca_base_param_file_prefix"


def test_tune_files_win_over_parameter_sets_and_those_over_files(places) -> None:
    here, sets = places
    for path, value in [(here / "t", 1), (here / "u", 2), (sets / "a.conf", 3), (here / "f", 4)]:
        path.write_text(f"btl = {value}\n")
    mca = [(TUNE, "t,u"), (AM, "a"), ("mca_base_param_file_path", str(sets))]
    settings = [s for s in gather_settings(mca, {}, [here / "f"]) if s.name == "btl"]
    assert [(s.raw, s.origin.source) for s in settings] == [
        ("1", "tune file"),
        ("2", "tune file"),
        ("3", "parameter set"),
        ("4", "file"),
    ]


def test_tune_files_are_looked_for_here_first_and_parameter_sets_last(places) -> None:
    here, sets = places
    (here / "x.conf").write_text("btl = here\n")
    (sets / "x.conf").write_text("btl = sets\n")
    environ = {"OMPY_MCA_mca_base_param_file_path": f"/nowhere:{sets}"}
    for name, expected in ((TUNE, "here"), (AM, "sets")):
        settings = gather_settings([(name, "x")], environ, [])
        assert [s.raw for s in settings if s.name == "btl"] == [expected]


def test_a_parameter_set_that_is_not_there(places) -> None:
    here, sets = places
    (sets / "scarce.conf").write_text("")
    mca = [(AM, "scarse,scarce"), ("mca_base_param_file_path", str(sets))]
    with pytest.raises(UsageError) as caught:
        gather_settings(mca, {}, [])
    assert caught.value.problems == (
        f"--am scarse,scarce: there is no file scarse in {sets}, {here}; did you mean scarce? "
        "(there are scarce)",
    )


def test_what_files_export_is_one_value_the_best_first(tmp_path: Path) -> None:
    left, right = tmp_path / "l", tmp_path / "r"
    left.write_text("-x A=1\n-x A=2\n")
    right.write_text("-x 'B=x y'\n")
    (setting,) = gather_settings([], {}, [left, right])
    assert setting == Setting(
        "mca_base_env_list_internal",
        "A=2 A=1 'B=x y'",
        Origin("file", f"{left}:2, {left}:1, {right}:1"),
    )


def test_the_override_file_is_the_systems(tmp_path: Path) -> None:
    path = tmp_path / "ompy-mca-params-override.conf"
    path.write_text("btl = forced\n")
    environ = {"OMPY_SYSCONFDIR": str(tmp_path), "HOME": "/nowhere"}
    first, second = gather_settings([("btl", "mine")], environ)
    assert (first.raw, first.origin) == ("forced", Origin("override file", f"{path}:1"))
    assert second.raw == "mine"


def test_a_name_may_begin_with_the_project(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("ompy_btl = 3\n")
    environ = {"OMPY_MCA_btl": "2", "OMPY_MCA_ompy_btl": "1"}
    assert pairs(gather_settings([("ompy_btl", "0")], environ, [path])) == [
        ("btl", "0", "--mca ompy_btl 0"),
        ("btl", "1", "OMPY_MCA_ompy_btl"),
        ("btl", "2", "OMPY_MCA_btl"),
        ("btl", "3", f"{path}:1"),
    ]


@pytest.mark.parametrize(
    ("given", "raw"), [('"a b"', "a b"), ('""', ""), ('"', '"'), ('"a', '"a'), ("'a'", "'a'")]
)
def test_a_pair_of_double_quotes_around_a_value_is_taken_off(given: str, raw: str) -> None:
    assert gather_settings([("btl", given)], {}, [])[0].raw == raw
