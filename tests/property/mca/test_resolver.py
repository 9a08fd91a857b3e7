"""The resolver against a naive model, over random stacks of sources."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.mca.errors import UsageError
from ompy.mca.groups import FrameworkInfo
from ompy.mca.parameter import Flag, Parameter, Synonym
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry


def parameter(name: str, flags: Flag = Flag.NONE, *synonyms: Synonym) -> Parameter:
    return Parameter(
        name, "int", -1, "Help.", level=1, minimum=0, flags=flags, synonyms=tuple(synonyms)
    )


PARAMETERS = (
    parameter("one"),
    parameter("two", Flag.NONE, Synonym("two_of_old", Flag.DEPRECATED), Synonym("clock_zwei")),
    parameter("fixed", Flag.DEFAULT_ONLY),
    parameter("outside", Flag.ENVIRONMENT_ONLY),
    parameter("old", Flag.DEPRECATED),
)
CATALOG = (FrameworkInfo("clock", "Help.", None, PARAMETERS),)
MAIN = {f"clock_base_{p.name}": p for p in PARAMETERS}
NAMES = {s.name: name for name, p in MAIN.items() for s in (Synonym(name), *p.synonyms)}
UNKNOWN = ["clock_base_four", "clok_base_one", "x"]
FILES = ("override file", "tune file", "parameter set", "file")

numbers = st.integers(0, 9).map(str)
good = st.tuples(st.sampled_from(list(NAMES)), numbers)
anything = st.tuples(
    st.sampled_from([*NAMES, *UNKNOWN]), numbers | st.sampled_from(["", "-1", "2x"])
)


class Stack(NamedTuple):
    """What a user has set, everywhere; files best first, each a list of lines in its order."""

    command_line: list[tuple[str, str]]
    environ: dict[str, str]
    files: dict[str, list[list[tuple[str, str]]]]
    as_options: bool


class Source(NamedTuple):
    value: str
    source: str
    detail: str


def stacks(assignment: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[Stack]:
    # two names of one variable on the command line are an error, which has a test of its own
    command_line = st.lists(
        assignment, max_size=3, unique_by=lambda pair: NAMES.get(pair[0], pair[0])
    )
    environ = st.lists(assignment, max_size=3, unique_by=lambda pair: pair[0]).map(dict)
    content = st.lists(assignment, max_size=4)
    several = st.lists(content, max_size=2)
    files = st.fixed_dictionaries(
        {kind: several if kind != "override file" else several.map(lambda f: f[:1])
         for kind in FILES}
    )  # fmt: skip
    return st.builds(Stack, command_line, environ, files, st.booleans())


def paths_of(stack: Stack, directory: str) -> dict[str, list[Path]]:
    return {
        kind: [Path(directory, f"{kind.replace(' ', '-')}{n}.conf") for n in range(len(contents))]
        for kind, contents in stack.files.items()
    }


def given_on_command_line(stack: Stack, directory: str) -> list[tuple[str, str]]:
    paths = paths_of(stack, directory)
    options = (
        ("tune file", "mca_base_envar_file_prefix"),
        ("parameter set", "mca_base_param_file_prefix"),
    )
    pairs = [(name, ",".join(map(str, paths[kind]))) for kind, name in options if paths[kind]]
    return [*stack.command_line, *pairs]


def build(stack: Stack, directory: str) -> Registry:
    paths = paths_of(stack, directory)
    for kind, contents in stack.files.items():
        for path, lines in zip(paths[kind], contents, strict=True):
            form = "{} = {}\n" if not stack.as_options else "-mca {} {}\n"
            quote = shlex.quote if stack.as_options else str
            path.write_text("".join(form.format(n, quote(value)) for n, value in lines))
    environ = {f"OMPY_MCA_{name}": value for name, value in stack.environ.items()}
    override = paths["override file"][0] if paths["override file"] else None
    settings = gather_settings(
        given_on_command_line(stack, directory), environ, paths["file"], override
    )
    return Registry(CATALOG, settings, [])


def sources(stack: Stack, directory: str, name: str) -> list[Source]:
    """Every value a name was given, best first: write all of them down from worst to best."""
    paths = paths_of(stack, directory)
    found: list[Source] = []

    def read(kind: str) -> None:
        for path, lines in reversed(list(zip(paths[kind], stack.files[kind], strict=True))):
            for number, (written, value) in enumerate(lines, 1):
                if NAMES.get(written, written) == name:
                    found.append(Source(value, kind, f"{path}:{number}"))

    for kind in ("file", "parameter set", "tune file"):
        read(kind)
    # in the environment the parameter's own name comes before its synonyms
    order = [name, *(s.name for s in MAIN[name].synonyms)] if name in MAIN else [name]
    for written in reversed(order):
        if written in stack.environ:
            found.append(Source(stack.environ[written], "environment", f"OMPY_MCA_{written}"))
    for written, value in stack.command_line:
        if NAMES.get(written, written) == name:
            found.append(Source(value, "command line", f"--mca {written} {value}"))
    read("override file")
    return found[::-1]


def split(name: str, every: list[Source]) -> tuple[list[Source], list[Source]]:
    """Those that count, and those that are ignored."""
    flags = MAIN[name].flags
    if flags & Flag.DEFAULT_ONLY:
        return [], every
    if flags & Flag.ENVIRONMENT_ONLY:
        outside = [s for s in every if s.source in ("command line", "environment")]
        return outside, [s for s in every if s not in outside]
    return every, []


@settings(deadline=None)
@given(stacks(good))
def test_the_best_source_wins_and_the_others_are_remembered(stack: Stack) -> None:
    with TemporaryDirectory() as directory:
        registry = build(stack, directory)
        registry.check_settings()
        copy = Registry.from_snapshot(CATALOG, json.loads(json.dumps(registry.snapshot())))
        for name in MAIN:
            counted, ignored = split(name, sources(stack, directory, name))
            for variable in (registry.variable(name), copy.variable(name)):
                lost = [Source(setting.raw, *setting.origin) for setting in variable.shadowed]
                if not counted:
                    assert (variable.value, variable.origin.source) == (-1, "default")
                    assert lost == ignored
                    continue
                found = [Source(str(variable.value), *variable.origin), *lost]
                assert found == [*counted, *ignored]
                forced = variable.origin.source == "override file"
                assert bool(variable.flags & Flag.OVERRIDE) == forced


@settings(deadline=None)
@given(stacks(anything))
def test_exactly_what_is_wrong_is_reported(stack: Stack) -> None:
    with TemporaryDirectory() as directory:
        registry = build(stack, directory)
        wrong = set()
        for name in UNKNOWN:
            wrong |= {(name, source.detail) for source in sources(stack, directory, name)}
        for name in MAIN:
            counted, _ = split(name, sources(stack, directory, name))
            if counted and not counted[0].value.isdigit():
                wrong.add((name, counted[0].detail))
    try:
        registry.check_settings()
        problems: tuple[str, ...] = ()
    except UsageError as error:
        problems = error.problems
    assert len(problems) == len(wrong), problems
    for _, detail in wrong:
        assert [
            text for text in problems if text.startswith(f"{detail}: ") or f" {detail}: " in text
        ]
    assert bool(problems) == bool(wrong)


@settings(deadline=None)
@given(stacks(good))
def test_exactly_what_has_no_effect_is_noticed(stack: Stack) -> None:
    with TemporaryDirectory() as directory:
        registry = build(stack, directory)
        expected = set()
        for name, declared in MAIN.items():
            counted, ignored = split(name, sources(stack, directory, name))
            expected |= {source.detail for source in ignored}
            if counted and counted[0].source == "override file":
                expected |= {s.detail for s in counted[1:] if s.source != "override file"}
            deprecated = [s.name for s in declared.synonyms if s.flags & Flag.DEPRECATED]
            if declared.flags & Flag.DEPRECATED:
                expected |= {source.detail for source in counted}
            expected |= {
                s.detail for s in counted if written_name(stack, directory, s) in deprecated
            }
    notices = registry.notices()
    for detail in expected:
        assert [text for text in notices if f"{detail}: " in text], detail
    assert {text.split(": ", 1)[0].removeprefix("environment variable ") for text in notices} == (
        expected
    )


def written_name(stack: Stack, directory: str, source: Source) -> str:
    """The name a source used, which may be a synonym."""
    if source.source == "command line":
        return source.detail.split()[1]
    if source.source == "environment":
        return source.detail.removeprefix("OMPY_MCA_")
    path, _, number = source.detail.rpartition(":")
    kind = source.source
    index = [str(p) for p in paths_of(stack, directory)[kind]].index(path)
    return stack.files[kind][index][int(number) - 1][0]
