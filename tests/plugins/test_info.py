"""What `ompy-info` tells of strangers, and what of their doings it keeps out of its output."""

from __future__ import annotations

import re

import pytest
from ompy.mca.registry import Registry

from tests.plugins.conftest import SITES, Commands
from tests.plugins.strangers import STRANGERS, VERSION, Stranger
from tests.support.worlds import registry

pytestmark = pytest.mark.proc


@pytest.fixture(scope="module")
def listing(installed, tmp_path_factory: pytest.TempPathFactory):
    commands = Commands(installed, tmp_path_factory.mktemp("listing"))
    return commands.info("--plugins"), commands.info("--plugins", "--parsable")


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.distribution)
def test_the_table_of_plugins(listing, stranger: Stranger) -> None:
    table, _ = listing
    assert table.code == 0
    rows = [line.split(maxsplit=6) for line in table.out.splitlines()]
    (row,) = [row for row in rows if row[2] == stranger.distribution]
    framework, name, _, version, file, state, *reason = row
    assert (framework, name, version) == (stranger.framework, stranger.name, VERSION)
    assert file.endswith(f"/{stranger.module}/__init__.py")
    assert (state, "".join(reason)) == (stranger.state, stranger.reason)


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.distribution)
def test_the_same_for_programs(listing, stranger: Stranger) -> None:
    _, parsable = listing
    key = f"plugin:{stranger.full_name}:{stranger.distribution}:"
    facts = [line.removeprefix(key) for line in parsable.out.splitlines() if key in line]
    told = dict(fact.split(":", 1) for fact in facts)
    assert told["version"] == VERSION
    assert told["file"].endswith(f"/{stranger.module}/__init__.py")
    assert told["state"] == stranger.state
    assert told["reason"].strip('"') == stranger.reason


def test_what_imports_print_is_kept_out(listing) -> None:
    """Every line of the parsable output is one of ours."""
    table, parsable = listing
    assert parsable.code == 0
    assert all(re.match(r"plugin:\w", line) for line in parsable.out.splitlines())
    assert "\nhello from the import" not in table.out + table.err + parsable.err


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.distribution)
def test_the_file_is_found_without_an_import(
    installed, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for site in SITES:
        monkeypatch.syspath_prepend(installed / site)
    made: Registry = registry()
    (record,) = [r for r in made.records if r.distribution == stranger.distribution]
    (expected,) = installed.glob(f"*/{stranger.module}/__init__.py")
    assert record.file == str(expected)
