"""A sequence diagram as Mermaid text, which GitHub, GitLab and many editors draw."""

from __future__ import annotations

from typing import Final

from ompy.trace.drawing.diagram import Diagram, Line, Point
from ompy.trace.message_events import Kind

ARROWS: Final = {Kind.DATA: "->>", Kind.CONTROL: "-->>", Kind.RDMA: "-)"}


def mermaid(diagram: Diagram) -> str:
    """The text. An arrow is drawn where it starts; `A → C` are the letters of its two steps."""
    lines = ["sequenceDiagram"]
    lines += [f"    participant r{rank} as {head}" for rank, head in diagram.ranks]
    first, last = diagram.ranks[0][0], diagram.ranks[-1][0]
    over = f"r{first},r{last}" if first != last else f"r{first}"
    lines.append(f"    Note over {over}: {diagram.title}<br/>{diagram.subtitle}")
    rows = [(line.start.row, _arrow(line)) for line in diagram.lines]
    rows += [(point.row, _note(point)) for point in diagram.points]
    rows += [
        (point.row, _note(point))
        for line in diagram.lines
        for point in (line.start, line.end)
        if point.text
    ]
    rows += [(row, f"    Note over {over}: {text}") for row, text in diagram.gaps]
    lines += [text for _, text in sorted(rows)]
    return "\n".join(lines) + "\n"


def _arrow(line: Line) -> str:
    letters = " → ".join(letter for letter in (line.start.letter, line.end.letter) if letter)
    head = f"{letters}: " if letters else ""
    return f"    r{line.start.rank}{ARROWS[line.kind]}r{line.end.rank}: {head}{line.text}"


def _note(point: Point) -> str:
    letter = f"{point.letter}: " if point.letter else ""
    return f"    Note over r{point.rank}: {letter}{point.text}"
