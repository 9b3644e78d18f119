# Completion of llmpart for fish, from the command's own tables.
function __llmpart_words
    set -l words (commandline -opc)
    if test (count $words) -lt 2
        echo help
    end
    if test (count $words) -lt 2; or test $words[2] = help
        llmpart help --words 2>/dev/null
    else
        llmpart $words[2] --help=words 2>/dev/null
    end
end
complete -c llmpart -a '(__llmpart_words)'
