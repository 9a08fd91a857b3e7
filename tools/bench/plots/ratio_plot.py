"""A plot of ratios with their targets, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

ROW: Final = 22  # pixels; arbitrary, as the rest: it has to be read
LABELS: Final = 460
WIDTH: Final = 520
LEAST, MOST = 0.05, 50.0  # ratios at the edges
REACHED, MISSED = "#2a7f4f", "#b5482a"


class Bar(NamedTuple):
    """One ratio: median, range over the rounds, target."""

    label: str
    ratio: float
    low: float
    high: float
    target: float


def svg(bars: Sequence[Bar], title: str) -> str:
    """All bars on a logarithmic scale; left of the thick line ompy is faster."""
    height = ROW * (len(bars) + 3)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABELS + WIDTH + 40}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="white"/><text x="8" y="16">{escape(title)}</text>',
    ]
    for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50):
        wide = 2 if tick == 1 else 0.5
        lines.append(
            f'<line x1="{_x(tick)}" x2="{_x(tick)}" y1="{ROW + 4}" y2="{height - ROW}" '
            f'stroke="#888" stroke-width="{wide}"/>'
            f'<text x="{_x(tick)}" y="{height - 6}" text-anchor="middle">{tick:g}</text>'
        )
    for number, bar in enumerate(bars):
        lines += _bar(bar, ROW * (number + 2))
    return "\n".join([*lines, "</svg>\n"])


def _bar(bar: Bar, y: int) -> list[str]:
    colour = REACHED if bar.ratio <= bar.target else MISSED
    return [
        f'<text x="{LABELS - 10}" y="{y + 4}" text-anchor="end">{escape(bar.label)}</text>',
        f'<line x1="{_x(bar.low)}" x2="{_x(bar.high)}" y1="{y}" y2="{y}" stroke="{colour}" '
        f'stroke-width="3" opacity="0.4"/>',
        f'<circle cx="{_x(bar.ratio)}" cy="{y}" r="5" stroke="{colour}" '
        f'stroke-width="2" fill="{colour if bar.ratio <= bar.target else "white"}"/>',
        f'<path d="M{_x(bar.target)} {y - 8} v16" stroke="black" stroke-width="1.5"/>',
    ]


def _x(ratio: float) -> float:
    inside = min(max(ratio, LEAST), MOST)
    return round(LABELS + WIDTH * log10(inside / LEAST) / log10(MOST / LEAST), 1)
