"""What a program does with what it receives from anybody: whether it matters which was first."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
from ompy.check.analysis.received import is_left, use_at
from ompy.check.analysis.received_uses import Use
from ompy.check.logs import Place

# the receive is in the line that has GET, which stands for it
FREE = {
    "summed up where it comes": "total += len(GET)",
    "of a list, summed up": "got = []\nfor _ in r:\n    got.append(GET)\nprint(sum(got))",
    "of a list, sorted in place": "got = []\ngot.append(GET)\ngot.sort()\nprint(got[0])",
    "of a function that returns a list": (
        "def collect():\n    out = []\n    out.append(GET)\n    return out\n"
        "print(sorted(collect()))"
    ),
    "of an object's list": (
        "class A:\n    def pull(self):\n        self.got.append(GET)\n"
        "    def all(self):\n        return sorted(self.got)"
    ),
    "at a key of its own": "x = GET\ntable[x['id']] = x['value']",
    "at an offset of its own": "at, block = GET\nwhole[at : at + 2] = block",
    "at an index in its buffer": "comm.Recv(room, ANY)  # GET\ngrid[int(room[0])] = room[1:]",
    "by a function that has the key": "def take(x):\n    table[x.key] = x.value\ntake(GET)",
    "the best": "x = GET\nif best is None or x < best:\n    best = x\nprint(best)",
    "a dropped one": "GET",
    "one whose name says that nobody reads it": "_ = GET",
    "in a set": "seen.add(GET)",
    "in a heap": "heapq.heappush(heap, GET)",
    "counted": "words.update(GET)",
    "and": "ok = GET and ok",
    "weights": "mean, count = GET\ntotal += mean * count",
    "who is answered": "who = GET\ncomm.send('stop', dest=who)",
    "of requests": "reqs = [comm.irecv(source=ANY)]  # GET\nprint(max(MPI.Request.waitall(reqs)))",
    "by a function that is handed on": (
        "class A:\n    def keep(self, x):\n        if self.best is None or x < self.best:\n"
        "            self.best = x\n"
        "def listen(handler):\n    handler(GET)\nlisten(a.keep)"
    ),
    "by a lambda": "def listen(handler):\n    handler(GET)\nlisten(lambda x: seen.add(x))",
    "by functions of which one is handed on by name": (
        "def keep(x):\n    seen.add(x)\ndef listen(n, handler):\n    handler(GET)\n"
        "listen(3, handler=keep)\nlisten(4, keep)"
    ),
    "at its own place by a ufunc": "at, text = GET\nnp.add.at(bins, at, 1)\nwords.update(text)",
    "told apart by kind": (
        "x = GET\nif isinstance(x, Tile):\n    tiles[x.a, x.b] = x.mean\n"
        "elif x is not None:\n    notes[x.rank] = x.text\nelse:\n    left -= 1"
    ),
    "told apart by match": (
        "match GET:\n    case ('add', value):\n        total += value\n"
        "    case ('max', value):\n        largest = max(largest, value)\n"
        "    case ['done', *_]:\n        done += 1"
    ),
    "new ones, once each": (
        "new = []\nfor w in GET:\n    if w not in far:\n        far[w] = level\n"
        "        new.append(w)\nprint(len(new), max(new))"
    ),
    "in a buffer that another receive fills again": (
        "for _ in r:\n    comm.Recv(room, ANY)  # GET\n    total[int(room[0])] = room[1]\n"
        "for _ in r:\n    comm.Recv(room, 1)\n    print(room[0])"
    ),
    "in a set at a key of its own": (
        "for w, pages in GET.items():\n    index.setdefault(w, set()).update(pages)"
    ),
    "joined, and sorted": "p = []\np.append(GET)\nt = np.sort(np.concatenate(p))\nprint(t[0])",
    "joined, and summed up": (
        "p = []\np.append(GET)\nt = np.concatenate(p)\nprint(t.mean(), len(t))"
    ),
    "by a method of the program that is called like one of a set": (
        "class A:\n    def update(self, x):\n        self.table[x.key] = x.value\na.update(GET)"
    ),
    "put, and got again in the same round": (
        "for _ in r:\n    with lock:\n        x = GET\n    if len(x) > 1:\n        seen.add(x[0])"
    ),
    "of a generator": "def each():\n    yield GET\nprint(sum(each()))",
}
ADDED = {
    "reduced": (
        "def each():\n    return (GET for _ in r)\nprint(functools.reduce(operator.mul, each()))"
    ),
    "added": "total += GET",
    "added later": "x = GET\nif x is None:\n    left -= 1\nelse:\n    total += x",
    "subtracted": "left -= GET",
    "added in a longer form": "total = total + GET",
    "the first of a sum": "x = GET\nfor _ in r:\n    x += comm.recv()\nprint(x)",
    "added to what the same receive got": "a = GET\nb = comm.recv(source=ANY)\nprint(a + b)",
    "the second one": "a = comm.recv(source=ANY)\nb = GET\nprint(a * b)",
    "two in one line": "print(GET + comm.recv(source=ANY))",
    "a buffer that is added": "comm.Recv(part, ANY)  # GET\nhist += part",
}
ANYTHING = {
    "printed": "print(GET)",
    "one that has a name": "first = GET",
    "a buffer that nobody reads": "comm.Recv(body, ANY)  # GET",
    "the first one": "got = []\ngot.append(GET)\nprint(got[0])",
    "stacked": "parts = []\nparts.append(GET)\nwhole = np.vstack(parts)",
    "the last one": "for _ in r:\n    state = GET\nprint(state)",
    "at the loop's index": "for i in r:\n    rows[i] = GET",
    "the first of weights": "x = GET\nx += 2 * comm.recv()\nprint(x)",
    "the first, less others": "x = GET\nx -= comm.recv()\nprint(x)",
    "the first of a sum, looked at": "x = GET\nprint(x)\nx += comm.recv()\nprint(x)",
    "a difference": "x = 2 * x - GET",
    "a difference of two": "a = GET\nb = comm.recv(source=ANY)\nprint(a - b)",
    "added, and looked at": "a = GET\nb = comm.recv(source=ANY)\nprint(a + b, a)",
    "added to another's": "a = GET\nb = comm.recv(source=ANY, tag=2)\nprint(a + b)",
    "two compared": "a = GET\nb = comm.recv()\nassert a < b",
    "in an unknown function": "other.work(GET)",
    "a buffer that is kept by the loop": "comm.Recv(row, ANY)  # GET\nfor i in r:\n    c[i] = row",
    "the two halves": "r = comm.Irecv(lower, ANY)  # GET\nr.Wait()\nprint(lower[0])",
    "a function that is handed on, and keeps the last": (
        "class A:\n    def keep(self, x):\n        self.last = x\n"
        "def listen(handler):\n    handler(GET)\nlisten(a.keep)"
    ),
    "a function that is handed on, and is not known": (
        "def listen(handler):\n    handler(GET)\nlisten(handlers[0])"
    ),
    "a lambda that keeps it in a list": (
        "def listen(handler):\n    handler(GET)\nlisten(lambda x: got.append(x))\nprint(got[0])"
    ),
    "a method that is called like one of a set, and keeps the last": (
        "class A:\n    def update(self, x):\n        self.state = x\na.update(GET)\nprint(a.state)"
    ),
    "methods of one name, of which one keeps the last": (
        "class A:\n    def add(self, x):\n        self.n += x\n"
        "class B:\n    def add(self, x):\n        self.state = x\nb.add(GET)"
    ),
    "a factor that later messages meet": (
        "for _ in r:\n    match GET:\n        case ('scale', x):\n            scale = x\n"
        "        case ('add', x):\n            total += scale * x"
    ),
    "a factor that is kept by an if": (
        "for _ in r:\n    x = GET\n    if x[0] == 'scale':\n        scale = x[1]\n"
        "    else:\n        total += scale * x[1]"
    ),
    "the last one, added": "for _ in r:\n    x = GET\ntotal += x",
    "joined, and the first": "p = []\np.append(GET)\nt = np.concatenate(p)\nprint(t[0])",
    "in a list at a key": "for w, p in GET.items():\n    index.setdefault(w, []).append(p)",
    "the first at a key": "for w, p in GET.items():\n    index.setdefault(w, p)",
    "what is done by kind": "x = GET\nif isinstance(x, str):\n    print('text')",
    "a case that prints": "match GET:\n    case ('add', value):\n        print(value)",
    "a case of which nothing is read": "match GET:\n    case 'first':\n        print('first')",
    "a case that sets one thing, and another": (
        "match GET:\n    case 'on':\n        state = 1\n    case 'off':\n        state = 0\n"
        "print(state)"
    ),
    "reduced by what does not commute": (
        "def each():\n    return (GET for _ in r)\nprint(functools.reduce(operator.sub, each()))"
    ),
    "the first new one": (
        "new = []\nfor w in GET:\n    if w not in far:\n        new.append(w)\nprint(new[0])"
    ),
    "a buffer that another receive fills, before it is read": (
        "for _ in r:\n    print(room[0])\n    comm.Recv(room, ANY)  # GET\ncomm.Recv(room, 1)"
    ),
    "what is done hangs on it": "x = GET\nif x == 1:\n    print('first')",
}


@pytest.mark.parametrize(
    ("text", "use"),
    [
        pytest.param(text, use, id=name)
        for use, texts in (
            (Use.ORDER_FREE, FREE),
            (Use.ADDED, ADDED),
            (Use.ANYTHING, ANYTHING),
        )
        for name, text in texts.items()
    ],
)
def test_what_becomes_of_it(text: str, use: Use, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(text.replace("GET", "comm.recv(source=ANY)"))
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "GET" in each)
    assert use_at(Place(str(path), line, "")) == use


LIBRARY = "def collect(comm):\n    return [comm.recv(source=ANY) for _ in range(3)]\n"
# what another module does with what a function of this one returns
ELSEWHERE = {
    "import library\nprint(max(library.collect(comm)))": Use.ORDER_FREE,
    "from library import collect\ngot = collect(comm)\nprint(got[0])": Use.ANYTHING,
    "from tools.library import collect\nprint(dict(zip(r, collect(comm))))": Use.ANYTHING,
    "def collect(x):\n    return x\nprint(collect([1])[0])": Use.ORDER_FREE,
}


@pytest.mark.parametrize("text", ELSEWHERE)
def test_what_another_module_does_with_it(text: str, tmp_path: Path) -> None:
    library, program = tmp_path / "library.py", tmp_path / "program.py"
    library.write_text(LIBRARY)
    program.write_text(text)
    place = Place(str(library), 2, "collect")
    assert use_at(place, (str(library), str(program))) == ELSEWHERE[text]


def test_a_function_of_another_module_that_gets_it(tmp_path: Path) -> None:
    library, program = tmp_path / "library.py", tmp_path / "program.py"
    library.write_text("def keep(x):\n    table[x.key] = x.value\n")
    program.write_text("from library import keep\nkeep(comm.recv(source=ANY))\n")
    place, files = Place(str(program), 2, ""), (str(library), str(program))
    assert use_at(place, files) == Use.ORDER_FREE
    assert use_at(place) == Use.ANYTHING


LEFT = {
    "n, x = GET\nprint(x)": True,
    "for _ in r:\n    n, x = GET\n    total += x\n": True,
    "n, x = GET\nprint(n)": False,
    "n, x = GET\nn += 1": False,
    "n, x = GET\nprint(locals())": False,
    "def get():\n    n, x = GET\n    return x\nprint(n)": False,
    "both = GET\nprint(both[1])": False,
    "(n, y), x = GET": False,
    "n, *x = GET": False,
}


@pytest.mark.parametrize("text", LEFT)
def test_elements_that_nobody_looks_at(text: str, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(text.replace("GET", "comm.recv(source=ANY)") + "\n")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "GET" in each)
    assert is_left(Place(str(file), line, ""), 0) == LEFT[text]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["n, x = comm.recv()\n"], False),
        (["def get():\n", "    n, x = comm.recv()\n", "    return x\n"], True),
    ],
)
def test_names_of_a_cell_that_a_later_one_may_read(
    lines: list[str], left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(linecache.cache, "In[3]", (len("".join(lines)), None, lines, "In[3]"))
    line = next(n for n, each in enumerate(lines, 1) if "recv" in each)
    is_left.cache_clear()
    assert is_left(Place("In[3]", line, ""), 0) == left
