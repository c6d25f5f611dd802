# Completion of doorward for fish. To have it in every shell:
#   doorward completion fish > ~/.config/fish/completions/doorward.fish

function __doorward_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    string match -q '*/*' -- $program; or set program doorward
    for line in ($program __complete -- $words[2..] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $current
            case :dirs
                __fish_complete_directories $current
            case :commands
                __fish_complete_subcommand --fcs-skip=(contains -i -- -- $words)
            case '*'
                echo $line
        end
    end
end

complete -c doorward -e
complete -c doorward -f -k -a '(__doorward_complete)'
