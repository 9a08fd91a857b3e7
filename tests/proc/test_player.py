"""A trace played in a real browser, from its directory alone: what is seen, moves and is said.

Needs the package playwright and a Chromium: `pip install playwright`, and `playwright install
chromium` or `apt-get install chromium`. Without them it says that it is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.send("early", dest=1, tag=7)
    comm.Send(bytearray(1 << 20), dest=1, tag=8)
    comm.Send(bytearray(100_000), dest=1, tag=9)
else:
    comm.Recv(bytearray(1 << 20), source=0, tag=8)
    comm.recv(source=0, tag=7)
    comm.Recv(bytearray(100_000), source=0, tag=9)
comm.Barrier()
comm.recv(source=1 - comm.rank, tag=99)
"""
GASNET = """
from ompy import gasnet
heard = []
def greeted(token, payload):
    gasnet.am_reply_medium(token, answered, payload)
def answered(token, payload):
    heard.append(bytes(payload))
gasnet.init()
gasnet.attach([greeted, answered], segment_size=gasnet.PAGE_SIZE)
if gasnet.mynode() == 0:
    gasnet.am_request_medium(1, greeted, b"hello")
    gasnet.block_until(lambda: heard)
    gasnet.put(1, 0, bytes(64))
    gasnet.get(bytearray(32), 1, 0)
gasnet.barrier()
"""
CROWDED = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank
receives = [comm.Irecv(bytearray(300_000), source=other, tag=tag) for tag in (1, 2)]
receives += [comm.irecv(source=other, tag=tag) for tag in (3, 4)]
sends = [comm.Isend(bytes(300_000), dest=other, tag=tag) for tag in (1, 2)]
sends += [comm.isend("some words", dest=other, tag=tag) for tag in (3, 4)]
MPI.Request.waitall(receives + sends)
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")
pytestmark = pytest.mark.proc


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    reason = "no browser is driven here: pip install playwright"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    path = next(filter(None, map(shutil.which, NAMES)), None)
    with api.sync_playwright() as driver:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
        try:
            opened = driver.chromium.launch(executable_path=path, args=sandbox)
        except api.Error as problem:
            pytest.skip(f"no browser begins: {str(problem).splitlines()[0]}")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a simulated job that ends in a deadlock; its program is not there any more."""
    return played(tmp_path_factory.mktemp("played"), PROGRAM, ("btl", "self,tcp"), 4)


@pytest.fixture(scope="module")
def gasnet_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a simulated job that uses GASNet alone, through the emulated network."""
    return played(tmp_path_factory.mktemp("gasnet"), GASNET, ("conduit_aries_pshm", "0"), 0)


def played(folder: Path, program: str, parameter: tuple[str, str], code: int) -> Path:
    """Simulate a program, and make a page of its trace alone."""
    (folder / "app.py").write_text(program)
    ompy = [sys.executable, "-m", "ompy.cli.main"]
    words = ["sim", "-q", "-n", "2", "--mca", *parameter, "--trace", "run", "app.py"]
    done = subprocess.run([*ompy, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    (folder / "app.py").unlink()
    words = ["trace", "run", "--play", "page.html"]
    subprocess.run([*ompy, *words], cwd=folder, check=True, capture_output=True)
    shutil.rmtree(folder / "run")
    return folder / "page.html"


@pytest.fixture
def page(browser: Any, page_file: Path) -> Iterator[Any]:
    yield from opened_page(browser, page_file)


@pytest.fixture
def crowded_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    yield from opened_page(browser, played(tmp_path, CROWDED, ("btl", "self,tcp"), 0))


@pytest.fixture
def gasnet_page(browser: Any, gasnet_file: Path) -> Iterator[Any]:
    yield from opened_page(browser, gasnet_file)


def opened_page(browser: Any, page_file: Path) -> Iterator[Any]:
    """The page, opened; whatever it asks for, or complains of, fails the test."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    opened = context.new_page()
    asked, complaints = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda problem: complaints.append(str(problem)))
    opened.on("console", lambda said: complaints.append(said.text))
    opened.goto(page_file.as_uri())
    yield opened
    assert asked == [page_file.as_uri()]
    assert complaints == []
    context.close()


def step(page: Any) -> int:
    return int(page.evaluate("document.body.dataset.step"))


def wait_until(page: Any, condition: Callable[[], bool]) -> None:
    """Not by playwright's own way, which the page's content security policy refuses."""
    for _ in range(1000):
        if condition():
            return
        page.wait_for_timeout(30)
    pytest.fail("it has not come")


def steps_that_say(page: Any, words: str) -> list[int]:
    texts = page.locator("#steps li").all_text_contents()
    return [number for number, text in enumerate(texts) if words in text]


def go(page: Any, number: int) -> None:
    page.locator("#steps li").nth(number).click()
    assert step(page) == number


def queue(page: Any, lane: int, name: str) -> list[str]:
    return page.locator(f'ul[data-queue="{name}"][data-lane="{lane}"] li').all_text_contents()


def test_lanes_queues_and_lines_of_source(page: Any) -> None:
    assert page.locator(".name b").all_text_contents() == ["rank 0 on host0", "rank 1 on host1"]
    (unexpected,) = steps_that_say(page, "no receive fits")[:1]
    go(page, unexpected)
    assert queue(page, 1, "unexpected") == ["eager from rank 0, tag 7, 13 B"]
    assert queue(page, 1, "posted") == ["from rank 0, tag 8"]
    lane = page.locator('.name[data-lane="1"]')
    assert "in Recv: 1 MiB, from 0, tag 8" in lane.inner_text()
    assert lane.locator("code").inner_text() == ("comm.Recv(bytearray(1 << 20), source=0, tag=8)")
    page.keyboard.press("End")  # the deadlock: a receive that nothing comes for
    assert queue(page, 0, "posted") == ["from rank 1, tag 99"]
    assert queue(page, 1, "unexpected") == ["none"]


def test_keys_and_buttons(page: Any) -> None:
    last = page.locator("#steps li").count() - 1
    assert step(page) == 0
    for key, expected in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last)):
        page.keyboard.press(key)
        assert step(page) == expected
    page.keyboard.press("ArrowRight")
    assert step(page) == last  # there is nothing behind it
    page.keyboard.press("Home")
    for button, expected in (("#forward", 1), ("#last", last), ("#back", last - 1), ("#first", 0)):
        page.click(button)
        assert step(page) == expected
    page.locator("#scrub").fill(str(last // 2))
    assert step(page) == last // 2
    assert f"step {last // 2 + 1} of {last + 1}" in page.locator("#clock").inner_text()
    page.locator("#scrub").focus()
    page.keyboard.press("ArrowRight")  # with the slider in focus, too, it is one step
    assert step(page) == last // 2 + 1
    page.locator("#steps li").nth(3).focus()
    page.keyboard.press("Enter")
    assert step(page) == 3


def test_playing_and_pausing(page: Any) -> None:
    page.select_option("#speed", "8")
    page.locator("h1").click()
    page.keyboard.press("Space")
    wait_until(page, lambda: step(page) > 3)
    page.keyboard.press("Space")
    here = step(page)
    assert page.locator("#play").inner_text() == "▶ play"
    page.wait_for_timeout(200)
    assert step(page) == here
    page.keyboard.press("+")
    assert page.locator("#speed").input_value() == "8"
    page.keyboard.press("-")
    assert page.locator("#speed").input_value() == "4"
    page.click("#play")
    last = page.locator("#steps li").count() - 1
    wait_until(page, lambda: step(page) == last)
    wait_until(page, lambda: page.locator("#play").inner_text() == "▶ play")
    page.click("#play")  # from the end it begins anew
    wait_until(page, lambda: step(page) < last)


def test_messages_move_as_arrows(page: Any) -> None:
    """The dot of a message is at its sender, then between the ranks, then there is an arrow."""
    moving = page.locator('g.message[data-moving="yes"] circle')
    go(page, steps_that_say(page, "sends MATCH 13 B")[0])
    heights = []
    page.select_option("#speed", "0.25")
    page.click("#play")
    for _ in range(200):
        if moving.count():
            heights.append(float(moving.first.get_attribute("cy")))
        if len(set(heights)) > 4:
            break
        page.wait_for_timeout(20)
    page.click("#play")
    assert len(set(heights)) > 4
    assert heights == sorted(heights)  # from rank 0 down to rank 1
    page.keyboard.press("End")
    assert moving.count() == 0


def test_protocols_have_words_and_patterns_beside_their_colours(page: Any) -> None:
    page.keyboard.press("End")
    labels = page.locator("text.label").all_text_contents()
    assert "eager 13 B" in labels
    assert "pipelined 1 MiB" in labels
    looks = page.evaluate(
        """() => [...document.querySelectorAll("#legend .sample")].map((each) => {
            const style = getComputedStyle(each);
            return [style.stroke, style.strokeDasharray, style.strokeWidth].join();
        })"""
    )
    assert len(set(looks)) == len(looks) >= 6
    families = page.locator("#legend li").all_text_contents()[:3]
    assert [text.partition(":")[0] for text in families] == ["eager", "pipelined", "rendezvous"]


def test_messages_of_collectives_can_be_hidden(page: Any) -> None:
    page.keyboard.press("End")
    internal = page.locator("g.internal")
    assert internal.count() == 2  # of the barrier
    assert internal.first.evaluate("each => getComputedStyle(each).display") == "inline"
    page.click("#internal")
    assert internal.first.evaluate("each => getComputedStyle(each).display") == "none"


def test_active_messages_puts_and_gets(gasnet_page: Any) -> None:
    """Handlers are bars, messages and transfers are arrows, and what is under way is listed."""
    page = gasnet_page
    titles = page.locator('.queue-pair[data-lane="0"] h3').all_text_contents()
    assert titles == ["messages for handlers", "own puts and gets"]
    go(page, steps_that_say(page, "sends AMRequestMedium 5 B")[0])
    assert queue(page, 1, "handlers") == ["greeted from rank 0, 5 B"]
    go(page, steps_that_say(page, "runs greeted")[0])
    assert (
        "in greeted: AMRequestMedium from rank 0, 5 B" in page.locator(".name").nth(1).inner_text()
    )
    assert queue(page, 1, "handlers") == ["none"]
    go(page, steps_that_say(page, "put 64 B to rank 1")[0])
    assert queue(page, 0, "transfers") == ["put to rank 1, 64 B"]
    moving = page.locator('g.message[data-moving="yes"]')
    assert moving.count() == 1
    assert moving.locator("circle.put").count() == 1
    page.keyboard.press("End")
    assert queue(page, 0, "transfers") == ["none"]
    labels = page.locator("text.label").all_text_contents()
    for words in ("greeted: request 5 B", "answered: reply 5 B", "put 64 B", "get 32 B"):
        assert words in labels
    hidden = page.locator("g.internal").first  # of the barrier
    page.click("#internal")
    assert hidden.evaluate("each => getComputedStyle(each).display") == "none"
    looks = page.evaluate(
        """() => [...document.querySelectorAll("#legend .sample")].map((each) => {
            const style = getComputedStyle(each);
            return [style.stroke, style.strokeDasharray, style.strokeWidth].join();
        })"""
    )
    assert len(set(looks)) == len(looks) == 7


def test_a_line_of_source_is_whole_on_a_narrow_screen(page: Any) -> None:
    page.set_viewport_size({"width": 500, "height": 900})
    go(page, steps_that_say(page, "calls Recv")[0])
    code = page.locator('.name[data-lane="1"] code')
    assert code.inner_text() == "comm.Recv(bytearray(1 << 20), source=0, tag=8)"
    assert code.evaluate("each => each.scrollHeight <= each.clientHeight")
    inside = """each => {
        const box = each.getBoundingClientRect(), room = each.parentElement.getBoundingClientRect();
        return box.bottom <= room.bottom && box.right <= room.right;
    }"""
    assert code.evaluate(inside)
    assert page.evaluate("document.documentElement.scrollWidth") <= 500


def test_labels_of_messages_at_one_time_lie_apart(crowded_page: Any) -> None:
    page = crowded_page
    overlaps = """() => {
        const shown = [...document.querySelectorAll("text.label")].filter(
            (each) => getComputedStyle(each.parentElement).visibility === "visible");
        const boxes = shown.map((each) => [each.textContent, each.getBBox()]);
        const found = [];
        boxes.forEach(([words, one], at) => boxes.slice(0, at).forEach(([others, other]) => {
            if (one.x < other.x + other.width - 4 && other.x < one.x + one.width - 4
                && one.y + 4 < other.y + other.height && other.y + 4 < one.y + one.height)
                found.push([words, others]);
        }));
        return found;
    }"""
    for number in range(page.locator("#steps li").count()):
        page.keyboard.press("ArrowRight")
        assert page.evaluate(overlaps) == [], number
