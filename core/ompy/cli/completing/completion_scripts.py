"""`ompy completion`: the scripts that make a shell complete our commands' words."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

COMMANDS: Final = ("ompy", "ompy-run", "ompy-info")


class CommaFishComplete(FishComplete):
    """Completion for fish of values with commas in them, of which click's script drops the end."""

    source_template = """\
function %(complete_func)s
    set -l words (commandline --cut-at-cursor --current-process | string collect)
    set -l word (commandline --cut-at-cursor --current-token)
    set -l asked %(complete_var)s=fish_complete COMP_WORDS="$words" COMP_CWORD="$word"
    for line in (env $asked %(prog_name)s)
        set -l parts (string split --max 1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


SHELLS: Final[dict[str, type[ShellComplete]]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": CommaFishComplete,
}
HINTS: Final = {
    "bash": 'For this shell: eval "$(ompy completion bash)". For every new one:\n'
    "#   mkdir -p ~/.ompy && ompy completion bash > ~/.ompy/completion.bash\n"
    "#   echo 'source ~/.ompy/completion.bash' >> ~/.bashrc",
    "zsh": 'For this shell: eval "$(ompy completion zsh)". For every new one:\n'
    "#   mkdir -p ~/.ompy && ompy completion zsh > ~/.ompy/completion.zsh\n"
    "#   echo 'source ~/.ompy/completion.zsh' >> ~/.zshrc      # after the line with compinit",
    "fish": "For this shell: ompy completion fish | source. For every new one:\n"
    "#   ompy completion fish > ~/.config/fish/conf.d/ompy.fish",
}


def script(shell: str) -> str:
    """What a shell has to read, beginning with a comment on how."""
    parts = [f"# Completion of {', '.join(COMMANDS)}. {HINTS[shell]}\n"]
    for name in COMMANDS:
        variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
        parts.append(SHELLS[shell](click.Command(name), {}, name, variable).source())
    return "\n".join(parts)


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete the words of ompy, ompy-run and ompy-info.

    The script's first lines say what to do with it.
    """
    click.echo(script(shell), nl=False)
