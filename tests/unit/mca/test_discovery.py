from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.plugins.discovery import scan_entry_points

WIRE = frozenset({"wire"})


def offered(records: list[ComponentRecord]) -> list[tuple[str, str, str]]:
    return [(record.distribution, record.name, record.target) for record in records]


def test_ours_come_first_then_by_distribution_and_name(site) -> None:
    site.distribution("zeta", {"ompy.wire": {"b": "z:B", "a": "z:A"}})
    site.distribution("ompy", {"ompy.wire": {"tcp": "o:T"}}, version="99")
    site.distribution("Alpha", {"ompy.wire": {"c": "a:C"}})
    assert offered(scan_entry_points(WIRE)) == [
        ("ompy", "tcp", "o:T"),
        ("Alpha", "c", "a:C"),
        ("zeta", "a", "z:A"),
        ("zeta", "b", "z:B"),
    ]


def test_only_our_groups_count_and_they_have_to_name_a_framework(site) -> None:
    groups = {"ompy.wire": {"a": "m:A"}, "ompy.wier": {"b": "m:B"}, "wire": {"c": "m:C"}}
    site.distribution("some", groups | {"ompy.": {"d": "m:D"}, "ompyx.wire": {"e": "m:E"}})
    assert [(record.name, record.state, record.reason) for record in scan_entry_points(WIRE)] == [
        ("d", State.INCOMPATIBLE, "there is no framework "),
        ("b", State.INCOMPATIBLE, "there is no framework wier; did you mean wire?"),
        ("a", State.FOUND, ""),
    ]


def test_an_alias_is_of_a_component_of_the_same_distribution(site) -> None:
    site.distribution("one", {"ompy.wire": {"a": "m:A"}, "ompy.wire.aliases": {"b": "a", "c": "x"}})
    site.distribution("two", {"ompy.wire": {"x": "m:X"}, "ompy.wier.aliases": {"d": "x"}})
    assert [(record.name, record.aliases, record.reason) for record in scan_entry_points(WIRE)] == [
        ("a", ("b",), ""),
        ("c", (), "it is an alias of x, which one does not offer"),
        ("d", (), "there is no framework wier; did you mean wire?"),
        ("x", (), ""),
    ]


def test_nothing_is_imported(site) -> None:
    module = site.component("tcp")
    scan_entry_points(WIRE)
    assert module not in sys.modules


def test_extras_and_spaces_are_no_part_of_the_target(site) -> None:
    site.distribution("some", {"ompy.wire": {"a": "m.n : A.B [extra]"}})
    assert offered(scan_entry_points(WIRE)) == [("some", "a", "m.n:A.B")]


def test_of_two_distributions_with_one_name_the_first_on_the_path_counts(
    site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.distribution("some", {"ompy.wire": {"old": "m:A"}}, version="1")
    front = type(site)(tmp_path)
    front.distribution("some", {"ompy.wire": {"new": "m:A"}}, version="2")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [(record.name, record.version) for record in scan_entry_points(WIRE)] == [("new", "2")]


def test_what_a_newer_distribution_no_longer_offers_does_not_count(
    site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.distribution("some", {"ompy.wire": {"old": "m:A"}}, version="1")
    front = type(site)(tmp_path)
    front.distribution("some", {"console_scripts": {"some": "m:main"}}, version="2")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert scan_entry_points(WIRE) == []


def test_a_directory_twice_on_the_path_counts_once(site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("some", {"ompy.wire": {"a": "m:A"}})
    monkeypatch.syspath_prepend(str(site.path))
    monkeypatch.setattr(sys, "path", [str(site.path), *sys.path])
    assert len(scan_entry_points(WIRE)) == 1


def test_entry_points_that_cannot_be_understood_make_one_broken_record(site) -> None:
    site.distribution("awful", "[ompy.wire]\nthis is no entry point\n")
    site.distribution("good", {"ompy.wire": {"a": "m:A"}})
    awful, good = scan_entry_points(WIRE)
    assert (awful.framework, awful.distribution, awful.state) == ("?", "awful", State.BROKEN)
    assert awful.reason.startswith("its entry_points.txt cannot be understood")
    assert good.state is State.FOUND


def test_metadata_of_strangers_cannot_stop_the_scan(site) -> None:
    site.distribution("nothing-to-do-with-us", "[console_scripts]\nthis is no entry point\n")
    (site.path / "bytes-1.dist-info").mkdir()
    (site.path / "bytes-1.dist-info" / "entry_points.txt").write_bytes(b"[ompy.wire]\na = \xff\xfe")
    site.distribution("nameless", {"ompy.wire": {"a": "m:A"}}, metadata="")
    assert offered(scan_entry_points(WIRE)) == [("?", "a", "m:A")]
