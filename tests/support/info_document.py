"""The JSON documents of `ompy-info` against their schema."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from ompy.cli.info.session import SCHEMA


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text())
    return found


def validate(document: dict[str, Any]) -> None:
    """Raises jsonschema.ValidationError when a document is not as the schema says."""
    Draft202012Validator(schema()).validate(document)
