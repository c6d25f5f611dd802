#compdef doorward
# Completion of doorward for zsh. To have it in every shell, in a folder of $fpath:
#   doorward completion zsh > "${fpath[1]}/_doorward"
# or in ~/.zshrc, after compinit:
#   source <(doorward completion zsh)

_doorward() {
  local line value directive
  local -a values
  local program=doorward
  [[ ${words[1]} == */* ]] && program=${words[1]/#\~\//$HOME/}

  while IFS= read -r line; do
    case $line in
      (:*) directive=$line ;;
      (*)
        value=${${line%%$'\t'*}//:/\\:}
        values+=("$value:${line#*$'\t'}")
        ;;
    esac
  done < <($program __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)

  case $directive in
    (:files) _files ;;
    (:dirs) _files -/ ;;
    (:commands)
      # What another program is given, it completes itself.
      local dashes=${words[(i)--]}
      words=("${(@)words[dashes + 1,-1]}")
      ((CURRENT -= dashes))
      _normal
      return
      ;;
  esac
  (($#values)) && _describe -V -t doorward doorward values
}

if [[ ${funcstack[1]} == _doorward ]]; then
  _doorward "$@"
else
  compdef _doorward doorward
fi
