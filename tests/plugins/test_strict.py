"""Strict plug-ins: whatever the selections allow has to work, or the job does not run."""

from __future__ import annotations

import pytest

from tests.plugins.strangers import STRANGERS, VERSION, Stranger

pytestmark = pytest.mark.proc

PROGRAM = """
import pathlib
pathlib.Path("started").touch()
from mpi4py import MPI
pathlib.Path("up").touch()
"""
SPELLINGS = {
    "--strict-plugins": (("--strict-plugins",), {}),
    "--mca mca_base_strict_plugins yes": (("--mca", "mca_base_strict_plugins", "yes"), {}),
    "environment variable OMPY_STRICT_PLUGINS": ((), {"OMPY_STRICT_PLUGINS": "1"}),
}
OURS = {"btl": "self,sm", "pml": "ob1", "coll": "basic"}
QUIET = ("hooks", "^grumpy,sulky")
KNOWN_BEFORE = [
    stranger
    for stranger in STRANGERS
    if stranger.state in ("broken", "incompatible", "shadowed") or stranger.name == "grumpy"
]


def complaint(stranger: Stranger, place: str = "--strict-plugins") -> str:
    said = f"broken ({stranger.said})" if stranger.framework == "hooks" else stranger.said
    origin = f"{stranger.distribution} {VERSION}"
    return f"component {stranger.full_name} of {origin}: {said}, which {place} does not allow"


def of(*distributions: str) -> list[Stranger]:
    return [stranger for stranger in STRANGERS if stranger.distribution in distributions]


def selecting(**selections: str) -> list[str]:
    return [word for framework, names in selections.items() for word in ("--mca", framework, names)]


@pytest.mark.parametrize("place", SPELLINGS)
def test_what_can_be_known_before_is_told_before_any_rank_starts(commands, place: str) -> None:
    options, environ = SPELLINGS[place]
    done = commands.run(2, PROGRAM, *options, *selecting(hooks="^grumpy"), **environ)
    assert done.code == 1
    assert not (commands.folder / "started").exists()
    told = [line for line in done.err.splitlines() if line.startswith("ompy-run: ")]
    expected = [stranger for stranger in KNOWN_BEFORE if stranger.name != "grumpy"]
    assert sorted(told) == sorted(f"ompy-run: error: {complaint(s, place)}" for s in expected)
    for stranger in expected:
        assert stranger.raised in done.err
    assert "/ompy/mca/" not in done.err


def test_a_hook_that_fails_before_the_start_counts_too(commands) -> None:
    commands.sites.pop()
    options = selecting(**OURS, hooks="^sulky")
    done = commands.run(2, PROGRAM, "--strict-plugins", *options)
    assert done.code == 1
    assert not (commands.folder / "started").exists()
    (grumpy,) = of("ompy-hooks-grumpy")
    assert f"ompy-run: error: {complaint(grumpy)}" in done.err
    assert "raise RuntimeError('no launching')" in done.err


def test_the_rest_is_told_by_the_rank_that_notices(commands) -> None:
    commands.sites.pop()
    late = of("ompy-btl-fragile", "ompy-btl-stumbles", "ompy-btl-mistaken", "ompy-pml-stumbles")
    late += of("ompy-hooks-sulky")
    names = sorted({s.name for s in KNOWN_BEFORE if s.framework == "btl"})
    options = selecting(btl=f"^{','.join(names)}", coll="basic", hooks="^grumpy")
    done = commands.run(2, PROGRAM, "--strict-plugins", *options)
    assert done.code == 1
    assert (commands.folder / "started").exists()
    assert not (commands.folder / "up").exists()
    text = " ".join(done.err.split())
    for stranger in late:
        assert text.count(complaint(stranger)) == 1
        assert stranger.raised in done.err
    assert text.count("which --strict-plugins does not allow") == len(late)


def test_what_fails_last_is_told_too(commands) -> None:
    commands.sites.pop()
    options = selecting(btl="self,sm", pml="ob1", hooks="^grumpy,sulky")
    done = commands.run(2, PROGRAM, "--strict-plugins", *options)
    assert (done.code, (commands.folder / "up").exists()) == (1, False)
    (stumbles,) = of("ompy-coll-stumbles")
    assert complaint(stumbles) in " ".join(done.err.split())


def test_what_is_not_allowed_need_not_work(commands) -> None:
    commands.sites.pop()
    options = selecting(**OURS, hooks="^grumpy,sulky")
    done = commands.run(2, PROGRAM, "--strict-plugins", *options)
    assert (done.code, done.err) == (0, "")
    assert (commands.folder / "up").exists()


def test_strictness_is_told_apart_from_what_was_asked_for(commands) -> None:
    """One complaint for a component, be it for two reasons."""
    commands.sites.pop()
    options = selecting(**OURS | {"btl": "self,sm,quits"}, hooks="^grumpy,sulky")
    done = commands.run(2, PROGRAM, "--strict-plugins", *options)
    assert done.code == 1
    assert done.err.count("component btl:quits") == 1


def test_ompy_info_complains_too(commands) -> None:
    for options in (("--mca", "mca_base_strict_plugins", "1"), ("--param", "btl", "tcp")):
        listing = commands.info(*options, OMPY_STRICT_PLUGINS="1")
        assert listing.code == 1
        (quits,) = of("ompy-btl-quits")
        assert f"component {quits.full_name} of {quits.distribution} {VERSION}: bro" in listing.err


def test_ompy_info_tells_where_it_was_set(commands) -> None:
    commands.sites.clear()
    options = ("--param", "mca", "base", "--level", "9", "--parsable")
    listing = commands.info(*options, OMPY_STRICT_PLUGINS="1")
    name = "mca:mca:base:param:mca_base_strict_plugins:"
    lines = [line.removeprefix(name) for line in listing.out.splitlines() if name in line]
    assert "value:true" in lines
    assert "source:environment (OMPY_STRICT_PLUGINS)" in lines
