"""The library itself: loaded once, its layouts checked, its errors as exceptions.

Nothing here is imported before somebody asks for a device of the component. The functions that make
or change objects go through `call`, which turns libfabric's negative numbers into `FabricError`
with the library's text.

Source: reference ofi.md B1, B2.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

from ompy.frameworks.nic.fabric import FabricError
from ompy.mca.component import NotAvailable

OLDEST: Final = (1, 17)  # declarations.py has its layouts; reference ofi.md B2: later ones append
MAJOR_NEWEST: Final = 2  # reference ofi.md B2: compared up to 2.6
POINTER: Final = 8  # bytes; the layouts are those of 64-bit systems
GET: Final = (
    "it comes with the system: `apt install libfabric1` (Debian, Ubuntu), `dnf install libfabric` "
    "(Fedora), `brew install libfabric`; nic_libfabric_library names another file"
)
TYPE_INFO: Final = 0  # libfabric: FI_TYPE_INFO, of fi_tostr
# arbitrary, but each another one: what the library has to find where we put it
MARKS: Final = (
    ("tx_attr", "inject_size", 70_001),
    ("tx_attr", "rma_iov_limit", 70_002),
    ("rx_attr", "size", 70_003),
    ("rx_attr", "iov_limit", 70_004),
    ("ep_attr", "max_msg_size", 70_005),
    ("ep_attr", "auth_key_size", 70_006),
    ("domain_attr", "mr_key_size", 70_007),
    ("domain_attr", "max_ep_srx_ctx", 70_008),
    ("domain_attr", "max_err_data", 70_009),
    ("domain_attr", "mr_cnt", 70_010),
    ("tx_attr", "tclass", 70_011),
    ("domain_attr", "tclass", 70_012),
)


class Library:
    """libfabric, with the functions that Python calls by name.

    Attributes:
        ffi: of the declarations.
        functions: the exported ones.
        path: what was loaded.
        version: of the library, major and minor.
        compiled: the calls that are made often, where they are compiled, else None.
    """

    def __init__(self, path: str, *, compiled: bool = True) -> None:
        """Load and check it; call by what is compiled, if that is there and wanted.

        Raises:
            NotAvailable: it is not there, or is not what the declarations describe.
        """
        try:
            from ompy_components.nic.libfabric.declared import ffi
        except ImportError as problem:
            raise NotAvailable(f"cffi is missing ({problem}): pip install 'ompy[ofi]'") from None
        self.ffi: Any = ffi
        self.compiled: Any = _compiled_calls() if compiled else None
        self.path = path
        if ffi.sizeof("void *") != POINTER:
            raise NotAvailable("its binding knows 64-bit systems only")
        try:
            self.functions: Any = ffi.dlopen(path)
            number = self.functions.fi_version()
        except (OSError, ffi.error) as problem:
            raise NotAvailable(f"libfabric is missing ({problem}): {GET}") from None
        self.version = (number >> 16, number & 0xFFFF)
        if not OLDEST <= self.version < (MAJOR_NEWEST + 1, 0):
            raise NotAvailable(
                f"{path} is libfabric {self.version_text}; {OLDEST[0]}.{OLDEST[1]} to "
                f"{MAJOR_NEWEST}.x are known: {GET}"
            )
        self._check()

    @property
    def version_text(self) -> str:
        """Of the library, `1.17`."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def interface(self) -> int:
        """The version of the interface to ask for: that of the declarations."""
        return OLDEST[0] << 16 | OLDEST[1]

    def _check(self) -> None:
        """Have the library read an info with marks in it, and see what it finds."""
        info = self.new_info()
        for part, field, mark in MARKS:
            setattr(getattr(info, part), field, mark)
        text = self.string(self.functions.fi_tostr(info, TYPE_INFO))
        lines = {line.strip() for line in text.splitlines()}
        for part, field, mark in MARKS:
            if not {f"{field}: {mark}", f"{field}: {mark:#x}"} & lines:
                raise NotAvailable(
                    f"{self.path} is libfabric {self.version_text}, and its {part}.{field} is not "
                    f"where the binding has it; nic_libfabric_library names another one"
                )

    def new_info(self) -> Any:
        """An empty fi_info, as long as the library has it; freed when nobody has it any more."""
        info = self.functions.fi_dupinfo(self.ffi.NULL)
        if not info:
            raise FabricError(12, "libfabric has no memory for an fi_info")  # ENOMEM
        return self.ffi.gc(info, self.functions.fi_freeinfo)

    def copy_info(self, info: Any) -> Any:
        """A copy, for changes."""
        copy = self.functions.fi_dupinfo(info)
        if not copy:
            raise FabricError(12, "libfabric has no memory for an fi_info")  # ENOMEM
        return self.ffi.gc(copy, self.functions.fi_freeinfo)

    def string(self, text: Any) -> str:
        """A C string, empty where there is none."""
        return str(self.ffi.string(text).decode(errors="replace")) if text else ""

    def text_of(self, errno: int) -> str:
        """Libfabric's words for an error number."""
        return self.string(self.functions.fi_strerror(errno))

    def error(self, result: int, what: str) -> FabricError:
        """The exception for a negative result of `what`."""
        return FabricError(-result, f"{what}: {self.text_of(-result)} (libfabric {-result})")

    def check_result(self, result: int, what: str) -> int:
        """The result of a call, which is an error when it is negative.

        Raises:
            FabricError: it is.
        """
        if result < 0:
            raise self.error(result, what)
        return result

    def slot(self, table: Any, name: str) -> Any:
        """The function in one slot of a table of an object's.

        Raises:
            FabricError: there is no table, it has no such slot, or the slot is empty.
        """
        if table:
            kind = self.ffi.typeof(table).item
            if table.size >= self.ffi.offsetof(kind, name) + POINTER:
                function = getattr(table, name)
                if function:
                    return function
        raise FabricError(38, f"the provider has no {name}: {self.text_of(38)}")  # ENOSYS

    def slot_or_none(self, table: Any, name: str) -> Any:
        """The function in one slot of a table, or None where the provider has none."""
        try:
            return self.slot(table, name)
        except FabricError:
            return None

    def often(self, name: str, table: Any, slot: str) -> Any:
        """A function that is called often, compiled where that is there; None: there is none.

        Args:
            name: of the table, as `calls_source.py` has it.
            table: of an object's.
            slot: of it.
        """
        function = self.slot_or_none(table, slot)
        if function is None or self.compiled is None:
            return function
        return getattr(self.compiled, f"{name}_{slot}")

    def close(self, fid: Any, what: str) -> None:
        """fi_close of any object.

        Raises:
            FabricError: it is in use, or the provider refuses.
        """
        self.check_result(self.slot(fid.ops, "close")(self.ffi.addressof(fid)), f"closing {what}")

    def bind(self, fid: Any, other: Any, flags: int, what: str) -> None:
        """fi_bind of two objects.

        Raises:
            FabricError: the provider refuses.
        """
        ffi = self.ffi
        bind = self.slot(fid.ops, "bind")
        self.check_result(bind(ffi.addressof(fid), ffi.addressof(other), flags), f"binding {what}")

    def control(self, fid: Any, command: int, argument: Any, what: str) -> None:
        """fi_control of any object.

        Raises:
            FabricError: the provider refuses.
        """
        control = self.slot(fid.ops, "control")
        self.check_result(control(self.ffi.addressof(fid), command, argument), what)


def _compiled_calls() -> Any:
    """The extension that `calls_source.py` describes, or None."""
    try:
        return import_module("ompy_components.nic.libfabric.calls").lib
    except ImportError:
        return None


@cache
def load_library(path: str, waittime: int, compiled: bool = True) -> Library:
    """The library, once per process.

    Args:
        path: file name, or a name the system's loader finds.
        waittime: for the sockets provider's progress thread, in ms; set before it is loaded, as it
            looks at it once. Negative, or when the user has set it: as it is.
        compiled: use the compiled calls where they are.

    Raises:
        NotAvailable: it cannot be used.
    """
    try:
        from ompy_components.nic.libfabric.declared import ffi
    except ImportError as problem:
        raise NotAvailable(f"cffi is missing ({problem}): pip install 'ompy[ofi]'") from None
    if waittime >= 0:
        ffi.dlopen(None).setenv(b"FI_SOCKETS_PE_WAITTIME", b"%d" % waittime, 0)
    return Library(path, compiled=compiled)
