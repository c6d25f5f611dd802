# Completion of doorward for bash. To have it in every shell:
#   doorward completion bash > ~/.local/share/bash-completion/completions/doorward
# or, without the package bash-completion, in ~/.bashrc:
#   eval "$(doorward completion bash)"

_doorward() {
  local -a typed values notes
  local rest=${COMP_LINE:0:COMP_POINT} word line cur head directive quoted i tab=$'\t' width=0
  COMPREPLY=()

  # bash takes ':' and '=' for ends of words: what has no space between is one word for us.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i > 0)) && [[ -n $rest && $rest != [[:space:]]* ]]; then
      [[ $rest == "$word"* ]] || word=$rest
      typed[${#typed[@]} - 1]+=$word
    else
      rest=${rest#"${rest%%[![:space:]]*}"}
      [[ $rest == "$word"* ]] || word=$rest
      typed+=("$word")
    fi
    rest=${rest#"$word"}
  done
  cur=${typed[${#typed[@]} - 1]}
  local open=
  case $cur in \'* | \"*) open=${cur:0:1} cur=${cur:1} typed[${#typed[@]} - 1]=$cur ;; esac

  local program=doorward
  [[ ${typed[0]} == */* ]] && program=${typed[0]/#\~\//$HOME/}
  while IFS= read -r line; do
    case $line in
      :*) directive=$line ;;
      "$cur"*)
        values+=("${line%%"$tab"*}")
        notes+=("${line#*"$tab"}")
        ;;
    esac
  done < <("$program" __complete -- "${typed[@]:1}" 2>/dev/null)

  # Only what stands after the last of those ends of words is replaced.
  word=$cur
  [[ $COMP_WORDBREAKS == *:* ]] || word=${word//:/-}
  [[ $COMP_WORDBREAKS == *=* ]] || word=${word//=/-}
  head=${word%"${word##*[:=]}"}
  [[ -n $open ]] && head=

  for i in "${!values[@]}"; do ((${#values[i]} > width)) && width=${#values[i]}; done
  for i in "${!values[@]}"; do
    quoted=${values[i]:${#head}}
    if ((${COMP_TYPE:-9} == 63 && ${#values[@]} > 1)) && [[ -n ${notes[i]} ]]; then
      # A list that is only looked at.
      printf -v quoted '%-*s  (%s)' "$((width - ${#head}))" "$quoted" "${notes[i]}"
      COMPREPLY+=("${quoted:0:${COLUMNS:-80} - 2}")
    else
      [[ -z $open ]] && printf -v quoted %q "$quoted"
      COMPREPLY+=("$quoted")
    fi
  done

  case $directive in
    :files) compopt -o default 2>/dev/null || while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur") ;;
    :dirs) compopt -o dirnames 2>/dev/null || while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$cur") ;;
    :commands) while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "$cur") ;;
  esac
}

# The newest events come first; older shells know no order but their own.
complete -o nosort -F _doorward doorward 2>/dev/null || complete -F _doorward doorward
