"""Every command refuses in one style: who, `error:`, why, and where its options are told."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result
from ompy.cli.info.command import run_info
from ompy.cli.main import main

REFUSED = {
    "trace": ["trace"],
    "trace nothere": ["trace", "nothere"],
    "sim": ["sim", "-n", "two", "x.py"],
    "": ["nosuchcommand"],
    "new": ["new", "foo", "bar"],
    "conformance": ["conformance", "foo", "bar"],
    "conformance coll": ["conformance", "coll", "nosuch"],
    "explain": ["explain", "foo"],
    "replay": ["replay", "nothere"],
    "k8s manifest": ["k8s", "manifest"],
    "top": ["top", "nojob"],
}


def refused(words: list[str]) -> Result:
    return CliRunner().invoke(main, words, prog_name="ompy")


@pytest.mark.parametrize("words", REFUSED.values(), ids=" ".join)
def test_a_refusal_begins_with_who_refuses(words: list[str]) -> None:
    done = refused(words)
    assert done.exit_code in {1, 2}, done.output
    said = done.stderr.splitlines()
    who = said[0].partition(": error: ")[0]
    assert who == "ompy" or who.split()[1] == words[0], said
    assert not [line for line in said if line.startswith(("Error", "Usage"))], said


@pytest.mark.parametrize("word", ["two", "0", "1000001", "1.5"])
def test_a_number_of_ranks_that_is_none_is_told_its_limits(word: str) -> None:
    done = refused(["sim", "-n", word, __file__])
    assert done.exit_code == 2
    assert f"{word!r} is no whole number from 1 to 1000000" in done.stderr
    assert done.stderr.endswith("Try 'ompy sim --help'.\n")


def test_a_number_without_an_end_is_told_its_beginning() -> None:
    done = refused(["trace", "--count", "0", "x"])
    assert "'0' is no whole number from 1 on" in done.stderr


@pytest.mark.parametrize("words", [["--param", "foo"], ["--bogus"], ["--param", "btl", "nosuch"]])
def test_ompy_info_refuses_in_the_same_words(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_info(words) in {1, 2}
    assert capsys.readouterr().err.startswith("ompy-info: error: ")


def test_ompy_alone_shows_its_help() -> None:
    done = refused([])
    assert "Usage: " in done.output
    assert "error" not in done.output.partition("Commands:")[0]


def test_a_trace_that_is_not_there_is_told_how_one_is_made() -> None:
    done = refused(["trace", "nothere"])
    assert done.exit_code == 2
    assert "ompy-run --trace nothere" in done.stderr
