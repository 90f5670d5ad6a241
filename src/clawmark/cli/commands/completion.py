"""`clawmark completion`: print the completion script of a shell, or the words that it asks for."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser, Namespace

from clawmark.cli.completion import as_bash, complete, split_line
from clawmark.cli.output import emit, one_line, say

EXAMPLES = """\
examples:
  clawmark completion bash > ~/.local/share/bash-completion/completions/clawmark
  clawmark completion zsh > ~/.zfunc/_clawmark      # and fpath+=~/.zfunc
  clawmark completion fish > ~/.config/fish/completions/clawmark.fish

In ~/.zshrc, `fpath+=~/.zfunc` stands before `compinit`. For the running shell
only: eval "$(clawmark completion bash)". The scripts call `clawmark completion
SHELL -- WORDS` for every TAB, so they need no update with Clawmark."""

BASH = r"""# Completion of clawmark in bash.
_clawmark() {
    local line program=${COMP_WORDS[0]/#\~/$HOME} found=()
    COMPREPLY=()
    while IFS= read -r line; do
        found+=("$line")
    done < <("$program" completion bash -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case ${found[0]-} in
        :files) compopt -o default 2>/dev/null ;;
        :folders) compopt -o dirnames 2>/dev/null ;;
        *)
            COMPREPLY=("${found[@]}")
            [[ ${found[0]-} == */ ]] && compopt -o nospace 2>/dev/null
            ;;
    esac
    return 0
}
complete -F _clawmark clawmark
"""

ZSH = r"""#compdef clawmark
# Completion of clawmark in zsh.
_clawmark() {
    local line
    local -a found folders others shown
    found=("${(@f)$("${words[1]/#\~/$HOME}" completion zsh -- \
        "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    case ${found[1]-} in
        :files) compset -P '--*='; _files; return ;;
        :folders) compset -P '--*='; _files -/; return ;;
    esac
    for line in "${found[@]}"; do
        [[ -z $line ]] && continue
        if [[ ${line%%$'\t'*} == */ ]]; then
            folders+=("${line%%$'\t'*}")
        else
            others+=("${line%%$'\t'*}")
            shown+=("${line/$'\t'/  -- }")
        fi
    done
    (( $#folders )) && compadd -S '' -a folders
    (( $#others )) && compadd -l -d shown -a others
}
if [[ ${funcstack[1]-} == _clawmark ]]; then
    _clawmark "$@"
else
    compdef _clawmark clawmark
fi
"""

FISH = r"""# Completion of clawmark in fish.
function __clawmark_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l program $before[1]
    set -e before[1]
    set -l found ($program completion fish -- $before "$current" 2>/dev/null)
    switch "$found[1]"
        case ':files'
            __fish_complete_path "$current"
        case ':folders'
            __fish_complete_directories "$current" ''
        case '?*'
            printf '%s\n' $found
    end
end
complete -c clawmark -f -a '(__clawmark_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    words = parser.add_argument(
        "words",
        nargs=REMAINDER,
        metavar="-- WORDS",
        help="print what completes these words (the scripts do this); bash gives the line",
    )
    words.required = False


def run(args: Namespace) -> int:
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        script = SCRIPTS[args.shell]
        if args.json:
            emit({"shell": args.shell, "script": script})
        else:
            say(script.rstrip())
        return 0
    quote = ""
    if args.shell == "bash":
        words, quote = split_line(words[0])
        words = words[1:]
    answer = complete(words)
    if answer.files:
        say(f":{answer.files}")
    for word, line in answer.words:
        if args.shell == "bash":
            say(as_bash(word, words[-1] if words else "", quote))
        else:
            say(f"{word}\t{one_line(line)}".rstrip("\t"))
    return 0
