"""`completion`: the script that lets a shell complete commands, options and job names."""

from __future__ import annotations

from typing import Annotated

import typer

from wakeful.console.failures import WrongUse
from wakeful.console.output import say_trusted
from wakeful.surfaces.cli.app import SERVER, app

BASH = r"""# wakeful completion for bash: add to ~/.bashrc
#   eval "$(wakeful completion bash)"
_wakeful() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("$1" _complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _wakeful wakeful
"""
ZSH = r"""#compdef wakeful
# wakeful completion for zsh: add to ~/.zshrc, or save as _wakeful in a directory of $fpath
#   eval "$(wakeful completion zsh)"
_wakeful() {
    local line
    local -a found
    for line in "${(@f)$("${words[1]}" _complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] && found+=("$line")
    done
    if (( ${#found} )); then
        _describe -V 'wakeful' found
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == "_wakeful" ]]; then  # loaded from $fpath by the first Tab
    _wakeful "$@"
else
    (( ${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
    compdef _wakeful wakeful
fi
"""
FISH = r"""# wakeful completion for fish: save as ~/.config/fish/completions/wakeful.fish
#   wakeful completion fish > ~/.config/fish/completions/wakeful.fish
function __wakeful_complete
    set -l typed (commandline -opc) (commandline -ct)
    set -l found (command wakeful _complete fish $typed[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c wakeful -f -a '(__wakeful_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@app.command("completion", rich_help_panel=SERVER)
def completion(
    shell: Annotated[
        str, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete in.", show_default=False)
    ],
) -> None:
    """Print a script that completes commands, options and job names.

    For bash and zsh: eval "$(wakeful completion bash)" in the shell's start file.
    """
    if shell not in SCRIPTS:
        raise WrongUse(f"There is no completion for {shell!r}: name one of {', '.join(SCRIPTS)}.")
    say_trusted(SCRIPTS[shell].rstrip())
