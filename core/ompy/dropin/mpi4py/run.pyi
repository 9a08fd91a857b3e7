from ompy.addons.running import run_command_line as run_command_line
from ompy.addons.running import set_abort_status as set_abort_status

__all__ = ["main", "run_command_line", "set_abort_status"]

USAGE: str
OPTIONS: str

def main() -> None: ...
