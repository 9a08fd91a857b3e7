"""What ranks write arrives whole, in lines, tagged, and never makes anybody's memory grow."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import wait_until_asleep

pytestmark = pytest.mark.proc

RANK = "import os, sys, time\nrank = int(os.environ['OMPY_RANK'])\n"
MEGABYTE = 1024 * 1024


def test_streams_stay_apart(launch):
    result = launch.python(1, "import sys; print('out'); print('err', file=sys.stderr)")
    assert (result.out, result.err) == ("out\n", "err\n")


def test_tags(launch):
    code = RANK + "print('a', rank); print('b'); print('e', file=sys.stderr)"
    result = launch.python(2, code, "--tag-output")
    assert sorted(result.out.splitlines()) == [
        "[1,0]<stdout>:a 0",
        "[1,0]<stdout>:b",
        "[1,1]<stdout>:a 1",
        "[1,1]<stdout>:b",
    ]
    assert sorted(result.err.splitlines()) == ["[1,0]<stderr>:e", "[1,1]<stderr>:e"]


TIME = r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}"


def test_timestamps(launch):
    result = launch.python(1, "print('a\\nb')", "--timestamp-output")
    assert re.fullmatch(rf"{TIME}<stdout>:a\n{TIME}<stdout>:b\n", result.out)
    result = launch.python(1, "print('a')", "--timestamp-output", "--tag-output")
    assert re.fullmatch(rf"{TIME}\[1,0\]<stdout>:a\n", result.out)


def test_a_line_written_in_pieces_is_one_line(launch):
    code = RANK + (
        "for piece in 'one two three'.split():\n"
        "    os.write(1, piece.encode()); time.sleep(0.02)\n"
        "os.write(1, b'\\n')"
    )
    result = launch.python(3, code, "--tag-output")
    assert sorted(result.out.splitlines()) == [
        f"[1,{rank}]<stdout>:onetwothree" for rank in range(3)
    ]


def test_a_last_line_without_end_is_not_lost(launch):
    assert launch("-n", 1, "printf", "abc").out == "abc"
    assert launch("-n", 1, "--tag-output", "printf", "a\\nbc").out == (
        "[1,0]<stdout>:a\n[1,0]<stdout>:bc"
    )
    result = launch("-n", 3, "printf", "abc")
    assert result.out == "abc\nabc\nabc", "lines of several ranks do not run together"


def test_lines_of_several_ranks_do_not_mix(launch):
    code = RANK + "for i in range(300): print(chr(65 + rank) * (rank * 1000 + i % 7 + 1))"
    result = launch.python(4, code)
    lines = result.out.splitlines()
    assert len(lines) == 1200
    assert all(len(set(line)) == 1 for line in lines)


def test_long_lines_stay_whole(launch):
    size = 700_000
    result = launch.python(3, RANK + f"print(chr(65 + rank) * {size})")
    assert sorted(result.out.splitlines()) == [letter * size for letter in "ABC"]


def test_an_absurdly_long_line_is_passed_on_in_pieces(launch):
    result = launch.python(1, f"import sys; sys.stdout.write('x' * {5 * MEGABYTE})")
    assert result.raw_out == b"x" * 5 * MEGABYTE


def test_bytes_arrive_as_they_are(launch):
    data = bytes(range(256)) * 64 + b"\n\0\n\xff\xfe" + b"\r\n" * 3
    result = launch.python(1, f"import os; os.write(1, {data!r}); os.write(2, {data[::-1]!r})")
    assert (result.raw_out, result.raw_err) == (data, data[::-1])


def test_much_output_of_all_ranks(launch):
    ranks, lines = 3, 10 * MEGABYTE // 64
    code = RANK + f"for i in range({lines}): print(f'{{rank}} {{i:060d}}')"
    result = launch.python(ranks, code)
    assert result.code == 0
    seen = dict.fromkeys(range(ranks), 0)
    for line in result.raw_out.splitlines():
        rank, number = line.split()
        assert int(number) == seen[int(rank)]
        seen[int(rank)] += 1
    assert seen == dict.fromkeys(range(ranks), lines)


def resident(pid):
    """Bytes of memory a process has, without its mapped files."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", text)[1]) * 1024


def test_a_slow_reader_makes_nobody_grow(launch, processes):
    """The ranks wait; launcher and agent keep a few megabytes at most."""
    code = RANK + ("line = b'x' * 999 + b'\\n'\nfor i in range(40_000):\n    os.write(1, line)\n")
    running = launch.start_python(2, code)
    first = os.read(running.process.stdout.fileno(), 1)
    assert first == b"x"
    ours = [pid for pid, command in processes().items() if "ompy.cli.run" in command]
    assert len(ours) == 2, "launcher and agent"
    before = {pid: resident(pid) for pid in ours}
    wait_until_asleep([pid for pid in processes() if pid not in ours])
    grown = {pid: resident(pid) - before[pid] for pid in ours}
    assert max(grown.values()) < 4 * MEGABYTE, grown
    assert len(processes()) == 4, "the ranks have not come to their end"
    result = running.end()
    assert result.code == 0
    assert 1 + len(result.raw_out) == 2 * 40_000_000


def test_a_reader_that_goes_away_ends_the_job(launch):
    code = RANK + "while True: print('y', flush=True)"
    running = launch.start_python(2, code)
    assert running.line() == "y"
    running.process.stdout.close()
    running.process.stdout = None
    _, err = running.process.communicate(timeout=30)
    assert (running.process.returncode, err) == (141, b"")


def test_a_pipeline_that_needs_one_line(launch):
    code = "while True: print('y')"
    command = f'{sys.executable} -m ompy.cli.run -n 2 {sys.executable} -c "{code}" | head -n 1'
    done = subprocess.run(
        command, shell=True, capture_output=True, timeout=30, env=launch.environment, check=True
    )
    assert (done.stdout, done.stderr) == (b"y\n", b"")


def test_closed_standard_error_does_not_matter(launch):
    code = RANK + "print('e' * 100, file=sys.stderr, flush=True); print('out')"
    running = launch.start_python(1, code, stderr=None, preexec_fn=lambda: os.close(2))
    assert running.end().out == "out\n"


def test_all_standard_streams_closed(launch, tmp_path):
    code = f"open({str(tmp_path / 'done')!r}, 'w').close()"

    def close_all():
        for number in range(3):
            os.close(number)

    running = launch.start_python(
        1, code, stdin=None, stdout=None, stderr=None, preexec_fn=close_all
    )
    assert running.process.wait(30) == 0
    assert (tmp_path / "done").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_reported(launch):
    with open("/dev/full", "wb") as full:
        result = launch("-n", 1, "echo", "hello", stdout=full).code
    assert result == 1


def test_output_into_a_file(launch, tmp_path):
    with open(tmp_path / "log", "wb") as log:
        running = launch.start("-n", 2, "echo", "hello", stdout=log, stderr=log)
        assert running.process.wait(30) == 0
    assert (tmp_path / "log").read_text() == "hello\nhello\n"


def test_output_after_finalizing_and_of_children_arrives(launch):
    code = "import subprocess; print('first', flush=True); subprocess.run(['echo', 'second'])"
    assert launch.python(1, code).out == "first\nsecond\n"


def test_a_traceback_is_complete_and_ends_the_job(launch):
    code = RANK + "sys.exit('x' * 50_000) if rank else time.sleep(1000)"
    result = launch.python(2, code)
    assert result.code == 1
    assert result.err.startswith("x" * 50_000 + "\n---")


def test_a_process_left_behind_does_not_keep_the_job(launch):
    result = launch("-n", 1, "sh", "-c", "sleep 1000 & echo started")
    assert (result.code, result.out) == (0, "started\n")


def test_a_process_left_behind_that_writes_for_ever_does_not_keep_the_job(launch):
    running = launch.start("-n", 1, "sh", "-c", "yes & exit 0", stdout=subprocess.DEVNULL)
    assert running.process.wait(30) == 0


def test_a_prompt_is_shown_before_the_answer(launch):
    running = launch.start_python(1, "print('got', input('name? '))", stdin=subprocess.PIPE)
    assert running.process.stdout.read(6) == b"name? "
    assert running.end(b"x\n").out == "got x\n"


def test_a_last_line_without_end_is_shown_when_its_rank_ends(launch):
    """Though another process of the rank still has the pipe and other ranks go on."""
    leaver = ["sh", "-c", "sleep 1000 & printf abc"]
    reader = ["-n", 1, "sh", "-c", "cat >&2"]
    running = launch.start("--stdin", 1, "-n", 1, *leaver, ":", *reader, stdin=subprocess.PIPE)
    assert running.process.stdout.read(3) == b"abc"
    assert running.end(b"").code == 0
