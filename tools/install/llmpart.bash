# Completion of llmpart for bash, from the command's own tables.
_llmpart() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  # bash splits at '='; an option with its value is one word here.
  if [ "$word" = = ]; then
    word=""
  fi
  if [ "$COMP_CWORD" = 1 ] || [ "${COMP_WORDS[1]}" = help ]; then
    words="help $(llmpart help --words 2>/dev/null)"
  else
    words=$(llmpart "${COMP_WORDS[1]}" --help=words 2>/dev/null)
    if [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ] || [ "${COMP_WORDS[COMP_CWORD]}" = = ]; then
      local option=${COMP_WORDS[COMP_CWORD - 1]}
      [ "$option" = = ] && option=${COMP_WORDS[COMP_CWORD - 2]}
      words=$(printf '%s\n' "$words" | sed -n "s/^$option=\(..*\)/\1/p")
    fi
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [ "${#COMPREPLY[@]}" = 1 ] && [ "${COMPREPLY[0]%=}" != "${COMPREPLY[0]}" ]; then
    compopt -o nospace
  fi
}
complete -o default -F _llmpart llmpart
