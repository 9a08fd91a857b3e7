"""The resolver against a naive model, over random stacks of sources."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from ompy.mca.component import ApiVersion
from ompy.mca.errors import UsageError
from ompy.mca.parameter import Parameter
from ompy.mca.registry import Registry
from ompy.mca.settings import gather


class Framework(NamedTuple):
    name: str
    help: str
    api: ApiVersion | None
    parameters: tuple[Parameter, ...]


PARAMETERS = tuple(
    Parameter(name, "int", -1, "Help.", level=1, minimum=0) for name in ("one", "two", "three")
)
CATALOG = (Framework("clock", "Help.", None, PARAMETERS),)
KNOWN = [f"clock_base_{parameter.name}" for parameter in PARAMETERS]
UNKNOWN = ["clock_base_four", "clok_base_one", "x"]

numbers = st.integers(0, 9).map(str)
good = st.tuples(st.sampled_from(KNOWN), numbers)
anything = st.tuples(st.sampled_from(KNOWN + UNKNOWN), numbers | st.sampled_from(["", "-1", "2x"]))


def stacks(assignment: st.SearchStrategy[tuple[str, str]]):
    """Command line, environment, files (best first; a file may set a name more than once)."""
    unique = st.lists(assignment, max_size=4, unique_by=lambda pair: pair[0])
    return st.tuples(
        unique, unique.map(dict), st.lists(st.lists(assignment, max_size=5), max_size=3)
    )


class Source(NamedTuple):
    value: str
    source: str
    detail: str


def model(stack, paths: list[Path]) -> dict[str, list[Source]]:
    """Every value of each name, best first: write all of them down from worst to best."""
    command_line, environ, files = stack
    written: dict[str, list[Source]] = {}
    for path, lines in reversed(list(zip(paths, files, strict=True))):
        for number, (name, value) in enumerate(lines, 1):
            written.setdefault(name, []).append(Source(value, "file", f"{path}:{number}"))
    for name, value in environ.items():
        written.setdefault(name, []).append(Source(value, "environment", f"OMPY_MCA_{name}"))
    for name, value in command_line:
        written.setdefault(name, []).append(Source(value, "command line", f"--mca {name} {value}"))
    return {name: sources[::-1] for name, sources in written.items()}


def build(stack, directory: str) -> tuple[Registry, dict[str, list[Source]]]:
    command_line, environ, files = stack
    paths = [Path(directory, f"{index}.conf") for index in range(len(files))]
    for path, lines in zip(paths, files, strict=True):
        path.write_text("".join(f"{name} = {value}\n" for name, value in lines))
    prefixed = {f"OMPY_MCA_{name}": value for name, value in environ.items()}
    registry = Registry(CATALOG, gather(command_line, prefixed, paths), [])
    return registry, model(stack, paths)


@given(stacks(good))
def test_the_best_source_wins_and_the_others_are_remembered(stack) -> None:
    with TemporaryDirectory() as directory:
        registry, expected = build(stack, directory)
    registry.check()
    copy = Registry.from_snapshot(CATALOG, json.loads(json.dumps(registry.snapshot())))
    for name in KNOWN:
        for variable in (registry.variable(name), copy.variable(name)):
            if name not in expected:
                assert (variable.value, variable.origin.source) == (-1, "default")
                assert variable.shadowed == ()
                continue
            found = [Source(str(variable.value), *variable.origin)]
            found += [Source(setting.raw, *setting.origin) for setting in variable.shadowed]
            assert found == expected[name]


@given(stacks(anything))
def test_exactly_what_is_wrong_is_reported(stack) -> None:
    with TemporaryDirectory() as directory:
        registry, expected = build(stack, directory)
    wrong = set()
    for name, sources in expected.items():
        if name in UNKNOWN:
            wrong |= {(name, source.detail) for source in sources}
        elif not sources[0].value.isdigit():
            wrong.add((name, sources[0].detail))
    try:
        registry.check()
        problems: tuple[str, ...] = ()
    except UsageError as error:
        problems = error.problems
    assert len(problems) == len(wrong)
    for name, detail in wrong:
        assert [text for text in problems if name in text and f"{detail}: " in text], (name, detail)
