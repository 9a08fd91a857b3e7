"""What ompy itself says, as text and as lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys

from ompy.mca.reporting import FORMATS, JSON, TEXT, Finding, Reporter

SENTENCE = "ompy-run: rank 1 to 0, tcp 10.1.0.2: broken\n"


def test_text_is_the_sentences_alone() -> None:
    assert Reporter().lines(Finding("rail lost", SENTENCE, "warning", {"rank": 1})) == SENTENCE


def test_json_is_a_line_with_all_that_is_known() -> None:
    reporter = Reporter(JSON).bind(job="ab12", host="node1").bind(rank=3)
    line = reporter.lines(
        Finding("rail lost", SENTENCE, "warning", {"rail": "tcp 10.1.0.2", "pause_ns": 5})
    )
    assert line.count("\n") == 1
    assert line.endswith("\n")
    told = json.loads(line)
    assert list(told)[:6] == ["timestamp", "level", "event", "job", "host", "rank"]
    del told["timestamp"]
    assert told == {
        "level": "warning",
        "event": "rail lost",
        "job": "ab12",
        "host": "node1",
        "rank": 3,
        "text": SENTENCE.rstrip(),
        "rail": "tcp 10.1.0.2",
        "pause_ns": 5,
    }


def test_several_lines_of_text_are_one_of_json() -> None:
    told = json.loads(Reporter(JSON).lines(Finding("job failed", "----\nit failed\n----\n")))
    assert told["text"] == "----\nit failed\n----"


def test_an_event_may_be_about_another_rank_than_the_one_bound() -> None:
    told = json.loads(
        Reporter(JSON).bind(rank=0).lines(Finding("job failed", "x\n", "error", {"rank": 4}))
    )
    assert told["rank"] == 4


def test_what_json_cannot_carry_is_its_text() -> None:
    told = json.loads(Reporter(JSON).lines(Finding("odd", "x\n", fields={"what": 1j})))
    assert told["what"] == "1j"


def test_nothing_to_say_is_nothing_in_any_form() -> None:
    assert [Reporter(form).lines(Finding("x", "")) for form in FORMATS] == ["", ""]


def test_steps_as_json() -> None:
    told = json.loads(
        Reporter(JSON).bind(rank=1).report_step("btl", "tcp opened", {"of": "x", "no": ""})
    )
    del told["timestamp"]
    assert told == {"level": "info", "event": "mca:btl: tcp opened", "rank": 1, "of": "x"}


def test_structlog_is_imported_for_the_first_event_only() -> None:
    script = (
        "import sys; from ompy.mca.reporting import Finding, Reporter; made = Reporter().bind(a=1);"
        "made.lines(Finding('x', '')); print('structlog' in sys.modules);"
        "made.lines(Finding('x', 'y')); print('structlog' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_forms() -> None:
    assert list(FORMATS) == [TEXT, JSON]
