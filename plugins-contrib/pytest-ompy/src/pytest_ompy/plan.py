"""What a test's `ompy` marker and the options of the command line ask for, checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

if TYPE_CHECKING:
    from ompy.mca.registry import Registry

MARKER: Final = "ompy"
SIZE: Final = "_ompy_n"  # parameter of a test that runs on several numbers of ranks
WORLDS: Final = ("real", "virtual")
ALLOWED: Final = "n, timeout, world, seeds, mca, unreceived, check and explore"
UNRECEIVED: Final = ("error", "ignore")
SIZES_MAX: Final = 512  # arbitrary: more ranks on one machine are rather a slip of the keyboard

Pairs = tuple[tuple[str, str], ...]


class PlanError(ValueError):
    """The marker asks for something that cannot be."""


class Plan(NamedTuple):
    """How a test is to be run.

    Attributes:
        sizes: numbers of ranks; the test is parametrised over several.
        world: real or virtual.
        timeout: seconds the test may take; 0 for ever.
        seeds: of the virtual world; one run each.
        mca: parameters and their values, each once.
        unreceived: `error` if messages nobody received make the test fail, else `ignore`.
        check: what `ompy-run --check` finds makes the test fail; it has ranks of its own.
        explore: the test is run in every schedule; of the virtual world.
    """

    sizes: tuple[int, ...]
    world: str
    timeout: float
    seeds: tuple[int, ...]
    mca: Pairs
    unreceived: str
    check: bool
    explore: bool = False


def plan_of(node: pytest.Item, config: pytest.Config) -> Plan | None:
    """The plan for a test, None for one that is not marked.

    Of several markers (on the module, the class, the function) the nearest that gives an argument
    decides it; options of the command line are above all.

    Raises:
        PlanError: an argument makes no sense; the text says which are allowed.
    """
    found: dict[str, Any] = {}
    marked = False
    for mark in node.iter_markers(MARKER):
        marked = True
        if mark.args:
            shown = ", ".join(map(repr, mark.args))
            raise PlanError(f"@pytest.mark.ompy({shown}): write n={mark.args[0]!r}; {_allowed()}")
        unknown = sorted(set(mark.kwargs) - set(_CHECKS))
        if unknown:
            raise PlanError(f"@pytest.mark.ompy has no argument {unknown[0]}; {_allowed()}")
        found = {**mark.kwargs, **found}
    if not marked:
        return None
    return _plan(found, config)


def _allowed() -> str:
    return f"the arguments are {ALLOWED}"


def _plan(found: Mapping[str, Any], config: pytest.Config) -> Plan:
    given = {**found, **_overrides(config)}
    if "n" not in given:
        raise PlanError("@pytest.mark.ompy: the number of ranks is missing, as in n=4")
    checked = {name: check(given[name]) for name, check in _CHECKS.items() if name in given}
    explore = bool(found.get("explore"))
    for other in ("seeds", "check"):
        if explore and found.get(other):
            raise PlanError(f"@pytest.mark.ompy: explore tries all orders: leave {other} out")
    if explore and found.get("world") == "real":
        raise PlanError("@pytest.mark.ompy: explore is of the virtual world: leave world out")
    if "seeds" in found and found.get("world", "real") == "real":
        raise PlanError("@pytest.mark.ompy: seeds are of the virtual world: add world='virtual'")
    virtual = checked.get("world") == "virtual"
    if found.get("check") and found.get("world") == "virtual":
        raise PlanError("@pytest.mark.ompy: check is of the real world: leave one of them out")
    mca: Pairs = tuple({**dict(checked.get("mca", ())), **_command_line_mca(config)}.items())
    if mca and "OMPY_RANK" not in os.environ:  # a rank's controller has checked them
        _check_parameters(mca)
    return Plan(
        sizes=checked["n"],
        world="virtual" if explore else checked.get("world", "real"),
        timeout=checked.get("timeout", _ini_seconds(config, "ompy_timeout")),
        seeds=checked.get("seeds", (0,)),
        mca=mca,
        unreceived=checked.get("unreceived", "error"),
        check=checked.get("check", False) and not virtual and not explore,
        explore=explore,
    )


def _overrides(config: pytest.Config) -> dict[str, Any]:
    """What the command line says instead of the marker."""
    seed = config.getoption("ompy_seed")
    values = {
        "n": config.getoption("ompy_n"),
        "world": config.getoption("ompy_world"),
        "seeds": None if seed is None else [seed],
        "check": config.getoption("ompy_check") or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _command_line_mca(config: pytest.Config) -> dict[str, str]:
    return dict(config.getoption("ompy_mca"))


def _ini_seconds(config: pytest.Config, name: str) -> float:
    text = config.getini(name)
    try:
        return _timeout(float(text))
    except ValueError:
        raise pytest.UsageError(f"{name} = {text}: a number of seconds is needed") from None


def grace_of(config: pytest.Config) -> float:
    """Seconds the other ranks get after the first has failed."""
    return _ini_seconds(config, "ompy_grace")


def check_settings(config: pytest.Config) -> None:
    """See that the ini options make sense.

    Raises:
        UsageError: one is no number of seconds.
    """
    for name in ("ompy_timeout", "ompy_grace"):
        _ini_seconds(config, name)


@lru_cache(maxsize=64)  # arbitrary: more combinations than a suite has
def _check_parameters(pairs: Pairs) -> None:
    """See that the parameters exist and take these values.

    Raises:
        PlanError: one does not.
    """
    from ompy.mca.errors import ComponentError, UsageError

    try:
        fresh_registry(pairs).check_settings()
    except UsageError as problem:
        raise PlanError("; ".join(problem.problems)) from None
    except ComponentError as problem:
        raise PlanError(str(problem)) from None


def fresh_registry(pairs: Pairs) -> Registry:
    """Components and parameters for a virtual world, with the user's files and environment."""
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.parameters.settings import gather_settings
    from ompy.mca.registry import Registry

    return Registry(CATALOG, gather_settings(pairs, os.environ))


def _sizes(value: Any) -> tuple[int, ...]:
    sizes = tuple(value) if isinstance(value, list | tuple | range) else (value,)
    whole = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
    if not sizes or not whole or not all(1 <= size <= SIZES_MAX for size in sizes):
        wanted = f"a number of ranks from 1 to {SIZES_MAX}, or a list of such, is needed"
        raise PlanError(f"@pytest.mark.ompy(n={value!r}): {wanted}")
    if len(set(sizes)) < len(sizes):
        raise PlanError(f"@pytest.mark.ompy(n={value!r}): a number is there twice")
    return sizes


def _timeout(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < float("inf"):
        wanted = "a number of seconds is needed, 0 for no limit"
        raise PlanError(f"@pytest.mark.ompy(timeout={value!r}): {wanted}")
    return float(value)


def _one_of(name: str, choices: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in choices:
            wanted = " or ".join(map(repr, choices))
            raise PlanError(f"@pytest.mark.ompy({name}={value!r}): {wanted} is needed")
        return str(value)

    return check


def _flag(name: str) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise PlanError(f"@pytest.mark.ompy({name}={value!r}): True or False is needed")
        return value

    return check


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        raise PlanError(
            f"@pytest.mark.ompy(seeds={value}): write seeds=range({value}) for {value} seeds, or "
            f"seeds=[{value}] for that one"
        )
    seeds = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if not seeds or not all(isinstance(seed, int) for seed in seeds):
        wanted = "whole numbers are needed, as in seeds=range(20)"
        raise PlanError(f"@pytest.mark.ompy(seeds={value!r}): {wanted}")
    return seeds


def _mca(value: Any) -> Pairs:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        wanted = 'parameters by name are needed, as in mca={"btl": "self,tcp"}'
        raise PlanError(f"@pytest.mark.ompy(mca={value!r}): {wanted}")
    return tuple((name, str(setting)) for name, setting in value.items())


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "n": _sizes,
    "timeout": _timeout,
    "world": _one_of("world", WORLDS),
    "seeds": _seeds,
    "mca": _mca,
    "unreceived": _one_of("unreceived", UNRECEIVED),
    "check": _flag("check"),
    "explore": _flag("explore"),
}
