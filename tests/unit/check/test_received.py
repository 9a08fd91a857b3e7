"""What a program does with what it receives from anybody: whether it matters which was first."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
from ompy.check.analysis.received import is_left, is_status_left, use_at
from ompy.check.analysis.use_words import Use
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
    "by a method of a class": (
        "class A:\n    @classmethod\n    def add(cls, x):\n        cls.best = max(cls.best, x)\n"
        "A.add(GET)"
    ),
    "by a function with its first arguments": (
        "def keep(table, key, x):\n    table[key] = x\nput = partial(keep, table)\n"
        "key, x = GET\nput(key, x)"
    ),
    "numbered, and nobody reads the number": (
        "for _, x in enumerate([GET for _ in r]):\n    best = max(best, x)"
    ),
    "the best of pairs": (
        "n, x = GET\nif (x, n) > (best.x, best.n):\n    best.x, best.n = x, n\nprint(best)"
    ),
    "the longest": "x = GET\nif len(x) > len(best):\n    best = x\nprint(best)",
    "the best, in one line": "if (x := GET) > best:\n    best = x",
    "wrong ones end it": "x = GET\nif x.bad:\n    raise ValueError(x)\nseen.add(x.n)",
    "the best": "x = GET\nif best is None or x < best:\n    best = x\nprint(best)",
    "the best, and in which step": (
        "for step in steps:\n    for _ in r:\n        x = GET\n        if x > best:\n"
        "            best, at = x, step\nprint(best, at)"
    ),
    "where a function says": (
        "def get():\n    x = GET\n    return x, x.source\nx, who = get()\ntable[who] = x\n"
        "print(table)"
    ),
    "rows, the largest as they come": (
        "reqs = [comm.Irecv(rows[i], ANY) for i in r]  # GET\n"
        "for k in MPI.Request.Waitsome(reqs):\n    best = max(best, rows[k].max())"
    ),
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
    "of a generator that a with statement closes": (
        "def each():\n    yield GET\nwith closing(each()) as source:\n    for x in source:\n"
        "        words.update(x)"
    ),
    "of a generator behind a bar": (
        "def each():\n    yield GET\nfor x in tqdm(each()):\n    words.update(x)"
    ),
    "in a list that is sorted by another name of itself": (
        "got = []\nfor _ in r:\n    got.extend(GET)\ngot = sorted(set(got))\nprint(got[0])"
    ),
    "rows that are summed up": "comm.Recv(rows[i], ANY)  # GET\nprint(rows.sum(axis=0))",
    "rows that are pending, and summed up": (
        "MPI.Request.Waitall([comm.Irecv(rows[i], ANY) for i in r])  # GET\nprint(rows.max())"
    ),
    "rows that a loop names": (
        "for row in rows:\n    comm.Recv(row, ANY)  # GET\nprint(np.sum(rows, axis=0))"
    ),
    "rows that are put where they say": (
        "for i in r:\n    comm.Recv(rows[i], ANY)  # GET\n"
        "for row in rows:\n    table[int(row[0])] = row[1:]"
    ),
    "a test that finds it": (
        "q = comm.irecv(source=ANY)  # GET\ndone, x = q.test()\nif done:\n    seen.add(x)"
    ),
    "one that awaits it": (
        "async def get():\n    q = comm.irecv(source=ANY)  # GET\n    while True:\n"
        "        done, x = q.test()\n        if done:\n            return x\n"
        "        await asyncio.sleep(0)\nasync def main():\n    seen.add(await get())"
    ),
    "all that a gather awaits": (
        "async def get():\n    return GET\nasync def main():\n"
        "    print(sum(await asyncio.gather(*(get() for _ in r))))"
    ),
    "one of several requests": (
        "qs = [comm.irecv(source=ANY) for _ in r]  # GET\n"
        "for _ in r:\n    i, x = MPI.Request.waitany(qs)\n    best = max(best, x)"
    ),
    "a set of what others have too": "got = set()\ngot |= GET",
    "by a function that is mapped": "print(sum(map(len, [GET for _ in r])))",
    "with a type in its source": "x: int = GET\nbest = max(best, x)",
    "a list with a type": "got: list[int] = [GET for _ in r]\nprint(sorted(got))",
    "in dicts that are joined": "all = {**all, **GET}",
    "text of it in a set": "x = GET\nseen.add(f'{x.name}')",
    "taken out again, and counted": (
        "got = [GET for _ in r]\nwhile got:\n    best = max(best, got.pop())"
    ),
    "apart, and each summed up": "xs, ys = zip(*[GET for _ in r])\nprint(sum(xs), max(ys))",
    "an array of all, summed up": "t = np.array([GET for _ in r])\nprint(t.mean(), t.std())",
    "rows of all, summed up": "t = np.vstack([GET for _ in r])\nprint(t.sum(axis=0))",
    "a column of all": "t = np.array([GET for _ in r])\nprint(t[:, 1].max())",
    "where it belongs among those that are sorted": "bisect.insort(got, GET)",
    "lists by key, summed up": (
        "for w, n in GET:\n    lists[w].append(n)\n"
        "print({w: sum(ns) for w, ns in lists.items()}, len(lists))"
    ),
    "lists by key, sorted": (
        "key, n = GET\nlists.setdefault(key, []).append(n)\n"
        "for key in sorted(lists):\n    print(key, sorted(lists[key]))"
    ),
    "sent back to who it names": "x = GET\ncomm.send(x.text, dest=x.who)",
    "one that has to be right": "x = GET\nassert x.ok\nseen.add(x.n)",
    "a record made of it": (
        "class A:\n    def __init__(self, x):\n        self.x = x\n"
        "print(max([A(GET) for _ in r], key=lambda a: a.x).x)"
    ),
    "a request of an object": (
        "class A:\n    def start(self):\n        self.q = comm.irecv(source=ANY)  # GET\n"
        "    def end(self):\n        seen.add(self.q.wait())"
    ),
    "a request that an object polls": (
        "class A:\n    def __init__(self, q):\n        self.q = q\n    def poll(self):\n"
        "        done, x = self.q.test()\n        if done:\n            seen.add(x)\n"
        "A(comm.irecv(source=ANY))  # GET"
    ),
    "of a generator of a generator": (
        "def each():\n    yield GET\ndef all():\n    yield from each()\nprint(max(all()))"
    ),
    "that fit": "print(max(filter(None, [GET for _ in r])))",
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
    "rows by the place of their request": (
        "reqs = [comm.Irecv(rows[i], ANY) for i in r]  # GET\nk = MPI.Request.Waitany(reqs)\n"
        "table[k] = rows[k].sum()\nprint(table)"
    ),
    "rows that are mixed as they come": (
        "reqs = [comm.Irecv(rows[i], ANY) for i in r]  # GET\n"
        "for k in MPI.Request.Waitsome(reqs):\n    state = state * 0.5 + rows[k]"
    ),
    "with the best, the turn": (
        "for turn in r:\n    x = GET\n    if x > best:\n        best, at = x, turn\nprint(best, at)"
    ),
    "with the best, how many came": (
        "while left:\n    n += 1\n    x = GET\n    if x > best:\n        best = x\n        at = n\n"
        "print(best, at)"
    ),
    "where a probe says": (
        "def get():\n    comm.Probe(ANY, 1, st)\n    x = GET\n    return x, st.Get_source()\n"
        "x, who = get()\ntable[who] = x\nprint(table)"
    ),
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
    "a text of all": "text = ''\nfor _ in r:\n    x = GET\n    text += x.word",
    "a list that becomes longer": "got = []\nfor _ in r:\n    got += [GET]\nprint(got[0])",
    "at numbers of its own making": "rows = {i: GET for i in r}",
    "taken out again, the first": "got = [GET for _ in r]\nx = got.pop(0)\nprint(x)",
    "an array of all, as it came": "t = np.array([GET for _ in r])\nprint(t[0])",
    "apart, and the first": "xs, ys = zip(*[GET for _ in r])\nprint(xs[0])",
    "lists by key, as they came": (
        "key, n = GET\nlists.setdefault(key, []).append(n)\n"
        "for key in sorted(lists):\n    print(key, lists[key])"
    ),
    "lists by key, their first": (
        "for w, n in GET:\n    lists[w].append(n)\nprint({w: ns[0] for w, ns in lists.items()})"
    ),
    "sent on to the next one": "x = GET\ncomm.send(x.text, dest=1)",
    "a record made of it, the first": (
        "class A:\n    def __init__(self, x):\n        self.x = x\nprint([A(GET) for _ in r][0].x)"
    ),
    "a sum of itself": "comm.Recv(u, ANY)  # GET\nv -= (v @ u) * u",
    "added or multiplied": (
        "kind, x = GET\nif kind == 'add':\n    total += x\nelse:\n    total *= x\nprint(total)"
    ),
    "what is better by much": "x = GET\nif x > best + 0.5:\n    best = x\nprint(best)",
    "by a function with its first arguments, that keeps the last": (
        "def keep(state, x):\n    state.last = x\nput = partial(keep, state)\nput(GET)"
    ),
    "what is left for it": ("x = GET\nif x <= stock:\n    stock -= x\nprint(stock)"),
    "what is left for it, by another branch": (
        "x = GET\nif x > stock:\n    refused += 1\nelse:\n    stock -= x"
    ),
    "a checksum of all": "h = hashlib.sha256()\nfor _ in r:\n    h.update(GET)",
    "a checksum of an object": (
        "class A:\n    def __init__(self):\n        self.h = zlib.md5()\n"
        "    def take(self):\n        self.h.update(GET)"
    ),
    "a list that is sorted too late": (
        "got = []\nfor _ in r:\n    got.append(GET)\nprint(got[0])\ngot.sort()"
    ),
    "a list that gets another name when it is sorted": (
        "got = []\nfor _ in r:\n    got.append(GET)\nright = sorted(got)\nprint(got[0])"
    ),
    "rows that nobody reads": "rows[0] = 1\ncomm.Recv(rows[i], ANY)  # GET",
    "rows that a loop names, and nobody reads": (
        "for row in rows:\n    comm.Recv(row, ANY)  # GET"
    ),
    "rows in the order of arrival": "comm.Recv(rows[i], ANY)  # GET\nprint(rows[0])",
    "rows that are summed up one by one": (
        "comm.Recv(rows[i], ANY)  # GET\nprint(rows.sum(axis=1))"
    ),
    "rows that a loop names, and their first": (
        "for row in rows:\n    comm.Recv(row, ANY)  # GET\nprint(rows[0])"
    ),
    "a test that finds it, and prints": (
        "q = comm.irecv(source=ANY)  # GET\ndone, x = q.test()\nif done:\n    print(x)"
    ),
    "one of several requests, at its index": (
        "qs = [comm.irecv(source=ANY) for _ in r]  # GET\n"
        "for _ in r:\n    i, x = MPI.Request.waitany(qs)\n    rows[i] = x"
    ),
    "numbered": "for i, x in enumerate([GET for _ in r]):\n    rows[i] = x",
    "mapped by what keeps it": (
        "def keep(x):\n    got.append(x)\nlist(map(keep, [GET for _ in r]))\nprint(got[0])"
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


STATUS = {
    "x = comm.recv(source=ANY, status=st)  # GET": True,
    "comm.Recv(room, ANY, 3, st)  # GET\nprint(st.Get_count())": True,
    "comm.Recv(room, ANY, 3, st)  # GET\nprint(st.Get_source())": False,
    "comm.Recv(room, ANY, 3, status=st)  # GET\nkeep(st)": False,
    "m = comm.mprobe(ANY, status=st)  # GET\nx = m.recv()": True,
    "m = comm.mprobe(ANY, status=st)  # GET\nx = m.recv()\nprint(st.tag)": False,
    "comm.Recv(room, ANY, status=self.st)  # GET": False,
    "x = comm.recv(source=ANY)  # GET": False,
    "def one():\n    comm.Recv(room, ANY, 3, st)  # GET\n    st = MPI.Status()\n"
    "def other():\n    st = MPI.Status()\n    print(st.source)": True,
    "st = MPI.Status()\ndef one():\n    comm.Recv(room, ANY, 3, st)  # GET\n"
    "def other():\n    print(st.source)": False,
}


@pytest.mark.parametrize("text", STATUS)
def test_a_status_that_nobody_asks(text: str, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(text + "\n")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "GET" in each)
    assert is_status_left(Place(str(file), line, "")) == STATUS[text]
