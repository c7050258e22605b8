# SPDX-License-Identifier: MIT
# fish completion for stakeout

function __stakeout_processes
	__fish_complete_pids
	cat /proc/*/comm 2>/dev/null | string match -r '^[\w.-]+$' | sort -u
end

set -l symbolize '__fish_seen_subcommand_from symbolize'
set -l cache '__fish_seen_subcommand_from cache'
set -l offcpu '__fish_seen_subcommand_from offcpu'
set -l stacks 'not __fish_seen_subcommand_from symbolize offcpu cache help version'

complete -c stakeout -f
complete -c stakeout -n 'not __fish_seen_subcommand_from replay symbolize cache help version' -a '(__stakeout_processes)'
complete -c stakeout -n __fish_is_first_arg -a snapshot -d 'Show running processes'
complete -c stakeout -n __fish_is_first_arg -a replay -d 'Show a saved snapshot'
complete -c stakeout -n __fish_is_first_arg -a symbolize -d 'Name addresses'
complete -c stakeout -n __fish_is_first_arg -a offcpu -d 'Record where threads wait'
complete -c stakeout -n __fish_is_first_arg -a cache -d 'Show or clear what is kept between runs'
complete -c stakeout -n __fish_is_first_arg -a help -d 'Show commands and options'
complete -c stakeout -n __fish_is_first_arg -a version -d 'Show the version and features'
complete -c stakeout -n '__fish_seen_subcommand_from help' -a 'snapshot offcpu replay symbolize cache version'
complete -c stakeout -n '__fish_seen_subcommand_from replay' -F
complete -c stakeout -n $stacks -s p -l pid -x -a '(__stakeout_processes)' -d 'A process'
complete -c stakeout -n $stacks -s r -l registers -d 'Show all general registers'
complete -c stakeout -n $stacks -l show-sp -d 'Show the stack pointer of each frame'
complete -c stakeout -n $stacks -l show-rsp -d 'Show the stack pointer of each frame'
complete -c stakeout -n $stacks -l stop -x -d 'Which threads to stop' \
    -a 'auto\t"those that run" all\t"the whole process" none\t"no thread"'
complete -c stakeout -n $stacks -l ptrace -d 'Unwind while stopped, reading word by word'
complete -c stakeout -n $stacks -l proc-mem -d 'Read memory through /proc/PID/mem'
complete -c stakeout -n $stacks -l stack-size -x -d 'Most to copy of each stack (suffixes k, m, g)'
complete -c stakeout -n $stacks -l stop-timeout -x -d 'Milliseconds to wait for a thread to stop'
complete -c stakeout -n $stacks -l ignore-deleted -d 'Also try the path of deleted files'
complete -c stakeout -n $stacks -l no-demangle -d 'Show names as the linker has them'
complete -c stakeout -n $stacks -s t -l tid -x -d 'Only this thread'
complete -c stakeout -n $stacks -s a -l all -d 'All processes of a name that several have'
complete -c stakeout -n $stacks -l children -d 'Also processes that these have started'
complete -c stakeout -n $stacks -l kernel -d 'Show kernel stacks'
complete -c stakeout -n $stacks -l no-kernel -d 'Do not show kernel stacks'
complete -c stakeout -n $stacks -l depth -x -d 'At most this many frames'
complete -c stakeout -n $stacks -l brief -d 'Only the table: a line for each stack'
complete -c stakeout -n $stacks -l state -x -a 'R\trunning S\tsleeping D\tuninterruptible T\tstopped Z\tended' \
    -d 'Only threads in these states'
complete -c stakeout -n $stacks -l name -x -d 'Only threads with such a name'
complete -c stakeout -n $stacks -l grep -x -d 'Only threads with a match in their stacks'
complete -c stakeout -n $stacks -l no-addresses -d 'Leave out the addresses of frames'
complete -c stakeout -n $stacks -l long -d 'Do not shorten lines to fit the terminal'
complete -c stakeout -n $stacks -l no-group -d 'One block for each thread'
complete -c stakeout -n $stacks -l save -r -F -d 'Also write the snapshot to a file'
complete -c stakeout -n $stacks -l json -d 'One JSON document for each process'
complete -c stakeout -n $stacks -s o -l output -r -F -d 'Write the report to a file'
complete -c stakeout -n $stacks -l color -x -a 'auto always never' -d Colours
complete -c stakeout -n $stacks -l no-color -d 'No colours'
complete -c stakeout -n $stacks -s v -l verbose -d 'All frames, and paths in full'
complete -c stakeout -n $stacks -s h -l help -d 'Show a summary of the options'
complete -c stakeout -n $stacks -l version -d 'Show the version and features'

complete -c stakeout -n $symbolize -s e -l exe -r -F -d 'The file that the addresses belong to'
complete -c stakeout -n $symbolize -s p -l pid -x -a '(__stakeout_processes)' -d 'The process that they belong to'
complete -c stakeout -n $symbolize -l build-id -x -d 'The build-id of the file that they belong to'
complete -c stakeout -n $symbolize -s j -l section -x -d 'Addresses count from this section'
complete -c stakeout -n $symbolize -s a -l addresses -d 'Show the address first'
complete -c stakeout -n $symbolize -s f -l functions -d 'Show the function'
complete -c stakeout -n $symbolize -s i -l inlines -d 'Show what it was inlined into'
complete -c stakeout -n $symbolize -s C -l demangle -d 'Show names as in the source'
complete -c stakeout -n $symbolize -l no-demangle -d 'Show names as the linker has them'
complete -c stakeout -n $symbolize -s s -l basenames -d 'Show files without directories'
complete -c stakeout -n $symbolize -l pretty-print -d 'One line for each function'
complete -c stakeout -n $symbolize -l json -d 'One JSON object for each address'
complete -c stakeout -n $symbolize -s h -l help -d 'Show a summary of the options'

complete -c stakeout -n $offcpu -s p -l pid -x -a '(__stakeout_processes)' -d 'A process'
complete -c stakeout -n $offcpu -s a -l all -d 'All processes'
complete -c stakeout -n $offcpu -s d -l duration -x -a '5 10 30 1min' -d 'For how long (seconds, or with a suffix)'
complete -c stakeout -n $offcpu -l min -x -a '0 10us 100us 1ms 10ms 100ms 1s' -d 'Only waits at least as long'
complete -c stakeout -n $offcpu -l max -x -a '1ms 10ms 100ms 1s' -d 'Only waits at most as long'
complete -c stakeout -n $offcpu -l state -x -a 'S\tsleeping D\tuninterruptible R\t"ready but without a CPU"' \
    -d 'Only waits in these states'
complete -c stakeout -n $offcpu -l children -d 'Also processes that these start'
complete -c stakeout -n $offcpu -l no-children -d 'Not the processes that these start'
complete -c stakeout -n $offcpu -l threads -d 'Each thread by itself'
complete -c stakeout -n $offcpu -l no-threads -d 'All processes of a program together'
complete -c stakeout -n $offcpu -l wakers -d 'Also who ended the wait'
complete -c stakeout -n $offcpu -l kernel-only -d 'No user stacks'
complete -c stakeout -n $offcpu -l user-only -d 'No kernel stacks'
complete -c stakeout -n $offcpu -l json -d 'One JSON document'
complete -c stakeout -n $offcpu -l folded -d 'A line for each stack, for flame graphs'
complete -c stakeout -n $offcpu -l events -d 'A line of JSON for each wait; =FILE: there, besides the report'
complete -c stakeout -n $offcpu -l hide-idle -d 'Leave out where threads only wait for work'
complete -c stakeout -n $offcpu -l top -x -d 'So many threads and stacks in the text'
complete -c stakeout -n $offcpu -l no-addresses -d 'Leave out the addresses of frames'
complete -c stakeout -n $offcpu -l long -d 'Do not shorten lines to fit the terminal'
complete -c stakeout -n $offcpu -s o -l output -r -F -d 'Write the report to a file'
complete -c stakeout -n $offcpu -l color -x -a 'auto always never' -d Colours
complete -c stakeout -n $offcpu -l no-color -d 'No colours'
complete -c stakeout -n $offcpu -l no-demangle -d 'Show names as the linker has them'
complete -c stakeout -n $offcpu -s v -l verbose -d 'All stacks, and paths in full'
complete -c stakeout -n $offcpu -s h -l help -d 'Show a summary of the options'
complete -c stakeout -n "$offcpu; and contains -- -- (commandline -opc)" -a '(__fish_complete_subcommand --fcs-skip=3)'

complete -c stakeout -n $cache -l clear -d 'Remove the files'
complete -c stakeout -n $cache -l json -d 'One JSON document'
complete -c stakeout -n $cache -s v -l verbose -d 'Each file'
complete -c stakeout -n $cache -s h -l help -d 'Show a summary of the options'

for command in $stacks $symbolize $offcpu
	complete -c stakeout -n $command -l no-cache -d 'Neither use nor keep the cache'
	complete -c stakeout -n $command -l debuginfod -d 'Ask debuginfod servers'
	complete -c stakeout -n $command -l debuginfod-timeout -x -d 'Seconds to wait for a server'
	complete -c stakeout -n $command -l patience -x -d 'How long to wait for what others deliver'
end
