"""Completion scripts: each shell asks ``kubectl-hami __complete`` for the next word."""

from __future__ import annotations

from typing import Final

_BASH: Final = """\
_kubectl_hami() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    [[ $word == :* ]] || COMPREPLY+=("$word")
  done < <(kubectl-hami __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_hami kubectl-hami"""
_ZSH: Final = """\
#compdef kubectl-hami
_kubectl_hami() {
  local -a found
  found=("${(@f)$(kubectl-hami __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -- "${(@)found:#:*}"
}
compdef _kubectl_hami kubectl-hami"""
_FISH: Final = """\
function __kubectl_hami
  set -l words (commandline -opc) (commandline -ct)
  kubectl-hami __complete $words[2..-1] 2>/dev/null | string match -v ':*'
end
complete -c kubectl-hami -f -a '(__kubectl_hami)'"""
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
