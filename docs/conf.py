"""Sphinx: the pages of docs/ and the READMEs as a site, with a reference made of the code.

    python tools/package site

The sources are the files of the tree where they stand, so every link between them is a link of the
site. `tools/site/` makes the reference (`docs/generated/`) when the build begins.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "core" / "ompy" / "dropin"))  # `mpi4py`, as under ompy-run

from tools.site import extension  # noqa: E402 - the root of the tree had to be known first

project = "ompy"
author = "the authors of ompy"
version = release = extension.version()
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "tools.site.extension"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/reference/*.md",
    "docs/generated/**",
    "core/ompy/**/README.md",
    "components/**/*.md",
    "plugins-contrib/README.md",
    "plugins-contrib/*/README.md",
    *(
        "examples/README.md",
        "configs/README.md",
        "tests/README.md",
        "tests/plugins/README.md",
        "tools/README.md",
    ),
]
exclude_patterns = [".venv", ".git", "build", "dist", "**/node_modules"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_linkify_fuzzy_links = False
default_role = "code"  # docstrings have `name`, as Markdown does
highlight_language = "none"
smartquotes = False  # an option in a sentence of help keeps its two dashes
nitpicky = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"ompy {release}"
html_extra_path = ["site/extra"]
html_static_path = ["site/static"]
html_css_files = ["ompy.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
