"""Where the tree is, and in which state."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# in git's words: all but documents
DOCUMENTS: Final = (":(exclude)docs", ":(exclude,glob)**/*.md")


def git(*arguments: str) -> str:
    """What a command of git prints; empty if it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def commit_name() -> str:
    """The commit of the tree, with a `+` behind it when there are changes but to documents."""
    dirty = git("status", "--porcelain", "--", ".", *DOCUMENTS)
    return git("rev-parse", "--short", "HEAD") + ("+" if dirty else "")
