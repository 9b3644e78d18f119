#compdef llmpart
# Completion of llmpart for zsh, from the command's own tables.
_llmpart() {
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then
    compadd -- help ${(f)"$(llmpart help --words 2>/dev/null)"}
    return
  fi
  local -a known=(${(f)"$(llmpart $words[2] --help=words 2>/dev/null)"})
  if [[ $PREFIX == --*=* ]]; then
    local option=${PREFIX%%=*}=
    local -a values=(${(M)known:#$option?*})
    compset -P '*='
    if (( $#values )); then compadd -- ${values#$option}; else _files; fi
  elif [[ $PREFIX == -* ]]; then
    compadd -S '' -- ${(M)known:#*=}
    compadd -- ${known:#*=*}
  else
    _files
  fi
}
_llmpart "$@"
