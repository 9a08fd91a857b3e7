"""Every possible cell of the fault matrix, and that the matrix would notice a defect."""

from __future__ import annotations

from collections import Counter

import pytest
from ompy_components.pml.bfo.receiving import BfoReceiving
from ompy_components.pml.bfo.sending import BfoSending
from ompy_components.pml.ob1.receiving import Receiving

from tests.support import fault_matrix
from tests.support.fault_matrix import Cell, cells, impossible
from tests.support.forms import interpreted_only

POSSIBLE = [cell for cell in cells() if not impossible(cell)]


@pytest.mark.parametrize("protocol", fault_matrix.PROTOCOLS)
def test_cells(protocol: str) -> None:
    delivered = Counter()
    for cell in POSSIBLE:
        if cell.protocol == protocol:
            struck = fault_matrix.run(cell)
            assert struck, f"{cell}: no fault was delivered"
            delivered[cell.fragment] += struck
    # each fragment of the protocol, and if it can dance the dance's
    own = set(fault_matrix.PROTOCOLS[protocol][3])
    if not protocol.startswith("eager"):
        own |= set(fault_matrix.DANCE) - (
            {fault_matrix.RESTART_NACK} if "FRAG" not in own else set()
        )
    assert set(delivered) == own


def test_every_cell_has_a_reason_or_a_run() -> None:
    assert len(list(cells())) == 14 * 9 * 6 * 8
    assert len(POSSIBLE) > 1000
    # every fragment, fault, moment and protocol is there
    for name in ("fragment", "fault", "moment", "protocol"):
        assert {getattr(cell, name) for cell in POSSIBLE} == {
            getattr(cell, name) for cell in cells()
        }


def _fails(cell: Cell) -> bool:
    try:
        fault_matrix.run(cell)
    except Exception:
        return True
    return False


@interpreted_only
@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("duplicates", Cell("MATCH", "error but delivered", "both", "eager prepared")),
        ("MATCH", Cell("MATCH", "lost", "during match", "eager allocated")),
        ("sendi", Cell(fault_matrix.SENDI, "lost", "during match", "eager immediate")),
        ("dance", Cell("FRAG", "lost", "after match", "send/receive pipeline")),
        ("keep", Cell("FRAG", "lost", "after match", "buffered")),
    ],
)
def test_a_defect_is_noticed(name: str, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _fails(cell)
    if name == "duplicates":
        monkeypatch.setattr(BfoReceiving, "out_of_turn", Receiving.out_of_turn)
    elif name == "keep":
        monkeypatch.setattr(
            BfoSending, "keep_rest", lambda _, request, sent: request.convertor.keep(sent)
        )
    elif name == "sendi":
        monkeypatch.setattr(BfoSending, "returned", lambda *_: None)
    else:
        monkeypatch.setattr(BfoSending, "lost", lambda *_: None)
    assert _fails(cell)
