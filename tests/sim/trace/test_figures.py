"""Each protocol of the seed, from a traced run of the virtual world to its figure.

The golden files are what the tools make of one seed. `OMPY_WRITE_GOLDEN=1` writes them anew: look
at the difference before committing it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from ompy.frameworks.btl import PUT
from ompy.trace.drawing.mermaid import mermaid
from ompy.trace.drawing.sequence_diagram import arrange
from ompy.trace.drawing.svg import svg
from ompy.trace.exporting.chrome import chrome
from ompy.trace.message_events import messages
from ompy.trace.trace_files import read_trace

from tests.sim.ob1.programs import exchange, one_message
from tests.sim.ob1.test_protocols import EXPECTED
from tests.support.rdma_btl import RdmaRail, rdma_world
from tests.support.worlds import virtual

GOLDEN = Path(__file__).parent / "golden"
# what the seed's figures show, from top to bottom: who sends what (0 is the sender)
FIGURES = {
    "Eager Send (Immediate)": ["0 MATCH"],
    "Eager Send (Prepared)": ["0 MATCH"],
    "Eager Send (Allocated)": ["0 MATCH"],
    "RDMA Direct Put": ["0 RNDV", "1 PUT", "1 PUT", "0 put", "0 put", "0 FIN", "0 FIN"],
    "RDMA Direct Get": ["0 RGET", "0 get", "0 get", "1 FIN", "1 FIN"],
    "Send/Receive Pipeline": ["0 RNDV", "1 ACK", *["0 FRAG"] * 4],
    "RDMA Pipeline": [
        "0 RNDV",
        "1 ACK",
        *["1 PUT"] * 2,
        *["0 FRAG"] * 3,
        "0 put",
        "0 put",
        "0 FRAG",
        "0 FIN",
        "0 FIN",
    ],
    "Buffered Pipeline": ["0 RNDV", "1 ACK", *["0 FRAG"] * 4],
}


def traced(name: str, folder: Path, seed: int = 0):
    """The trace of a message that takes this protocol, from its files."""
    if name == "Eager Send (Immediate)":
        job = virtual(2, one_message(100), btl="self,sm", trace=True, seed=seed)
    else:
        program, rails, _ = EXPECTED[name]
        job = rdma_world(2, program, rails, trace=True, seed=seed)
    job.write_trace(str(folder))
    return read_trace(str(folder))


def drawn(trace):
    return arrange(messages(trace.events), trace.headers)


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("OMPY_WRITE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text(), f"{name} has changed; see this module's docstring"


def file_name(protocol: str) -> str:
    return re.sub(r"\W+", "-", protocol.lower()).strip("-")


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_the_figure(name: str, tmp_path: Path) -> None:
    trace = traced(name, tmp_path)
    (message,) = messages(trace.events)
    assert message.protocol == name
    arrows = message.arrows()
    assert [f"{arrow.source} {arrow.name}" for arrow in arrows] == FIGURES[name]
    assert all(arrow.arrived is not None for arrow in arrows)
    assert sum(arrow.size for arrow in arrows) == message.size
    diagram = drawn(trace)
    assert len(diagram.lines) == len(arrows)
    assert all(line.end.row > line.start.row for line in diagram.lines)
    golden(f"{file_name(name)}.mmd", mermaid(diagram))


def test_the_other_formats(tmp_path: Path) -> None:
    """The richest of the protocols as SVG, Chrome's JSON and lines of text."""
    trace = traced("RDMA Pipeline", tmp_path)
    golden("rdma-pipeline.svg", svg(drawn(trace)))
    golden("rdma-pipeline.json", chrome(trace))
    golden("rdma-pipeline.txt", "".join(f"{event.line()}\n" for event in trace.events))


def test_the_letters_on_the_life_lines(tmp_path: Path) -> None:
    """The diagram has the letters of ob1's table, and B where only the tool can know it."""
    diagram = drawn(traced("Eager Send (Immediate)", tmp_path))
    points = [*diagram.points, *(p for line in diagram.lines for p in (line.start, line.end))]
    assert {(p.rank, p.letter) for p in points if p.letter} == {(0, "A"), (1, "B")}
    diagram = drawn(traced("RDMA Direct Get", tmp_path))
    points = [*diagram.points, *(p for line in diagram.lines for p in (line.start, line.end))]
    letters = {(p.rank, p.letter) for p in points if p.letter}
    assert letters == {(0, "A"), (1, "C"), (1, "D"), (0, "F"), (0, "G")}


def test_a_picture_says_what_its_letters_are(tmp_path: Path) -> None:
    diagram = drawn(traced("RDMA Direct Get", tmp_path))
    assert diagram.letters == [
        "A: RGET sent",
        "C: get begins",
        "D: FIN sent, receive complete",
        "F: FIN arrives",
        "G: send complete",
    ]


def test_messages_of_two_pairs_have_the_numbers_of_the_list(tmp_path: Path) -> None:
    """Each of them is the first of its own pair of ranks."""
    job = virtual(2, exchange, btl="self,sm,tcp", trace=True)
    job.write_trace(str(tmp_path))
    trace = read_trace(str(tmp_path))
    found = messages(trace.events)[:4]
    labels = [line.text for line in arrange(found, trace.headers, [7, 8, 9, 10]).lines]
    assert {label.rpartition(" #")[2] for label in labels} == {"7", "8", "9", "10"}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_one_seed_one_trace(tmp_path: Path) -> None:
    """Byte for byte: files, and everything made from them. Another seed is another trace."""
    made = []
    for run, seed in enumerate((5, 5, 6)):
        folder = tmp_path / str(run)
        job = virtual(2, exchange, btl="self,sm,tcp", seed=seed, trace=True)
        job.write_trace(str(folder))
        trace = read_trace(str(folder))
        made.append((files(folder), chrome(trace), svg(arrange(messages(trace.events)[:20], {}))))
    assert made[0] == made[1]
    assert made[0][0]["rank-0.jsonl"] != made[2][0]["rank-0.jsonl"]
    assert set(made[0][0]) == {"job.json", "rank-0.jsonl", "rank-1.jsonl"}


def test_every_message_is_found_whole(tmp_path: Path) -> None:
    """Of 81 messages of all sizes and modes both sides are there, and every arrow arrives."""
    job = rdma_world(3, exchange, [RdmaRail(), RdmaRail(flags=PUT)], trace=True)
    job.write_trace(str(tmp_path))
    found = messages(read_trace(str(tmp_path)).events)
    assert len(found) == 81
    for message in found:
        assert {e.name for e in message.sends} & {"MATCH", "RNDV", "RGET"}
        assert message.receives[-1].name == "COMPLETE"
        assert all(arrow.arrived is not None for arrow in message.arrows())
        assert sum(arrow.size for arrow in message.arrows()) == message.size


def test_a_long_message_is_shortened(tmp_path: Path) -> None:
    """The middle of a hundred FRAGs becomes one line that says how many there were."""
    rails = [RdmaRail(flags=0)]
    job = rdma_world(2, one_message(200_000), rails, trace=True)
    job.write_trace(str(tmp_path))
    diagram = drawn(read_trace(str(tmp_path)))
    ((_, text),) = diagram.gaps
    hidden = int(text.split()[0])
    shown = sum(line.text.startswith("FRAG") for line in diagram.lines)
    assert (shown, hidden + shown) == (7, 99)
    assert text.split()[1:3] == ["more", "FRAG,"]
