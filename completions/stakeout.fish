# SPDX-License-Identifier: MIT
# fish completion for stakeout

complete -c stakeout -f
complete -c stakeout -n 'not __fish_seen_subcommand_from replay' -a '(__fish_complete_pids)'
complete -c stakeout -n __fish_is_first_arg -a snapshot -d 'Show running processes'
complete -c stakeout -n __fish_is_first_arg -a replay -d 'Show a saved snapshot'
complete -c stakeout -n '__fish_seen_subcommand_from replay' -F
complete -c stakeout -s p -l pid -x -a '(__fish_complete_pids)' -d 'A process'
complete -c stakeout -s r -l registers -d 'Show all general registers'
complete -c stakeout -l show-sp -d 'Show the stack pointer of each frame'
complete -c stakeout -l show-rsp -d 'Show the stack pointer of each frame'
complete -c stakeout -l stop -x -d 'Which threads to stop' \
    -a 'auto\t"those that run" all\t"the whole process" none\t"no thread"'
complete -c stakeout -l ptrace -d 'Unwind while stopped, reading word by word'
complete -c stakeout -l proc-mem -d 'Read memory through /proc/PID/mem'
complete -c stakeout -l stack-size -x -d 'Most to copy of each stack (suffixes k, m, g)'
complete -c stakeout -l stop-timeout -x -d 'Milliseconds to wait for a thread to stop'
complete -c stakeout -l ignore-deleted -d 'Also try the path of deleted files'
complete -c stakeout -s t -l tid -x -d 'Only this thread'
complete -c stakeout -l kernel -d 'Show kernel stacks'
complete -c stakeout -l no-kernel -d 'Do not show kernel stacks'
complete -c stakeout -l depth -x -d 'At most this many frames'
complete -c stakeout -l no-group -d 'One block for each thread'
complete -c stakeout -l save -r -F -d 'Also write the snapshot to a file'
complete -c stakeout -l json -d 'One JSON document for each process'
complete -c stakeout -s o -l output -r -F -d 'Write the report to a file'
complete -c stakeout -l color -x -a 'auto always never' -d Colours
complete -c stakeout -l no-color -d 'No colours'
complete -c stakeout -s v -l verbose -d 'Errors in full'
complete -c stakeout -s h -l help -d 'Show a summary of the options'
complete -c stakeout -l version -d 'Show the version and features'
