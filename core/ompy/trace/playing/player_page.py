"""The page that plays a trace: one file of HTML that needs nothing else.

`player/` has its parts. The page fetches nothing: its content security policy forbids it, so what a
stranger's trace holds is shown and nothing more.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

PARTS: Final = {"@STYLE@": "page.css", "@SCRIPT@": "player.js"}


def player_page(told: Mapping[str, Any]) -> str:
    """The page; the same for the same data.

    Args:
        told: what `playback` has made of a trace.
    """
    # `<` ends or begins nothing in a script only where it is not there
    data = json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")
    text = _part("page.html")
    for mark, name in PARTS.items():
        text = text.replace(mark, _part(name).strip(), 1)
    title = html.escape(f"{told['title']}: a trace of ompy")
    # the title's mark is the first of the page: what the data holds cannot be taken for it
    return text.replace("@DATA@", data, 1).replace("@TITLE@", title, 1)


def _part(name: str) -> str:
    return files("ompy.trace.playing").joinpath("player", name).read_text(encoding="utf-8")
