"""The quick look at what is installed finds what the standard library finds, or nothing."""

import sys

import pytest
from ompy.frameworks.catalog import CATALOG
from ompy.mca.plugins import discovery
from ompy.mca.plugins.installed import only_ours

FRAMEWORKS = frozenset(framework.name for framework in CATALOG)
OURS = "[console_scripts]\nx = y:z\n# a comment\n\n[ompy.btl]\na=  b.c : D [extra]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A path on which there is nothing but one folder, with ompy in it."""
    info = tmp_path / "ompy-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy\nVersion: 1.2\n\nName: no\n")
    (info / "entry_points.txt").write_text(OURS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    return tmp_path


def test_it_is_what_the_standard_library_finds(monkeypatch):
    if only_ours() is None:
        pytest.skip("packages of strangers are installed here")
    quick = [record.to_dict() for record in discovery.scan_entry_points(FRAMEWORKS)]
    monkeypatch.setattr(discovery, "only_ours", lambda: None)
    assert quick == [record.to_dict() for record in discovery.scan_entry_points(FRAMEWORKS)]
    assert len(quick) > 10


def test_entry_points_are_read(folder, monkeypatch):
    found = only_ours()
    assert (found.name, found.version) == ("ompy", "1.2")
    assert ("a", "b.c : D [extra]", "ompy.btl") in found.entry_points
    quick = [record.to_dict() for record in discovery.scan_entry_points(FRAMEWORKS)]
    monkeypatch.setattr(discovery, "only_ours", lambda: None)
    assert quick == [record.to_dict() for record in discovery.scan_entry_points(FRAMEWORKS)]


def _stranger(folder):
    info = folder / "other-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[ompy.pml]\nx = y:z\n")


def _archive(folder):
    (folder / "some.zip").write_bytes(b"PK")
    sys.path.append(str(folder / "some.zip"))


def _finder(folder):
    class Finder:
        @staticmethod
        def find_distributions(_context):
            return []

    sys.meta_path.append(Finder)


@pytest.mark.parametrize(
    "change",
    [
        _stranger,
        _archive,
        _finder,
        lambda folder: (folder / "EGG-INFO").mkdir(),
        lambda folder: (folder / "x.egg").mkdir(),
        lambda folder: (folder / "ompy-1.2.dist-info" / "METADATA").unlink(),
        lambda folder: (folder / "ompy-1.2.dist-info" / "entry_points.txt").unlink(),
        lambda folder: (folder / "ompy-1.2.dist-info" / "entry_points.txt").write_bytes(b"\xff"),
        lambda folder: (folder / "ompy-1.2.dist-info" / "entry_points.txt").write_text("ompy. odd"),
    ],
)
def test_whatever_else_there_is_the_standard_library_looks_at(folder, monkeypatch, change):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    assert only_ours() is not None
    change(folder)
    assert only_ours() is None
