#compdef stakeout
# SPDX-License-Identifier: MIT

_stakeout_processes() {
	_alternative 'pids:process:_pids' "names:name:(${(u)$(cat /proc/[0-9]*/comm(N) 2>/dev/null | grep -v '[^[:alnum:]._-]')})"
}

_stakeout_what() {
	if [[ $words[2] == replay ]] && (( CURRENT > 2 )); then
		_files
	else
		_alternative 'processes:process:_stakeout_processes' \
			'commands:command:((snapshot\:"show running processes" why\:"what threads wait for, and deadlocks" watch\:"who is stuck, and who only slow"
				replay\:"show a saved snapshot"
				symbolize\:"name addresses" offcpu\:"record where threads wait"
				cache\:"show or clear what is kept between runs" doctor\:"try what works here" setup\:"let a group use it" help\:"show commands and options"
				version\:"show the version and features"))'
	fi
}

if [[ $words[2] == help ]] && (( CURRENT > 2 )); then
	_values command snapshot why watch offcpu replay symbolize cache doctor setup version
	return
fi

if [[ $words[2] == version ]] && (( CURRENT > 2 )); then
	return
fi

if [[ $words[2] == (why|watch) ]] && (( CURRENT > 2 )); then
	local -a often
	[[ $words[2] == why ]] || often=(
		'(-i --interval)'{-i,--interval}'[from one look to the next]:time:(100ms 1s 10s 1min)'
		'(-n --looks)'{-n,--looks}'[how many; 0\: until Ctrl-C]:number:(0 10 60)'
	)
	shift words
	(( CURRENT-- ))
	_arguments -s -S $often \
		'*'{-p,--pid}'[a process]:process:_stakeout_processes' \
		'(-a --all)'{-a,--all}'[all processes of a name that several have]' \
		'--children[also processes that these have started]' \
		'--stop[which threads to stop]:mode:(auto hold none)' \
		'--window[for how long CPUs are taken at most]:time:' \
		'--stop-timeout[milliseconds to wait for a thread to stop]:milliseconds:' \
		'--stack-size[most to copy of each stack]:bytes:' \
		'--proc-mem[read memory through /proc/PID/mem]' \
		'--json[one JSON document]' \
		'--dot[a graph for graphviz]' \
		'(-o --output)'{-o,--output}'[write to a file]:file:_files' \
		'--color[when to use colors]:when:(auto always never)' \
		'--no-demangle[show names as the linker has them]' \
		'--no-cache[neither use nor keep the cache]' \
		'--debuginfod=-[ask debuginfod servers]::URLs:' \
		'--debuginfod-timeout[give up when nothing came for so long]:seconds:' \
		'--patience[how long to wait for memory and files that somebody else delivers]:time:' \
		'(-v --verbose)'{-v,--verbose}'[all frames, and paths in full]' \
		'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]' \
		'*:process:_stakeout_processes'
	return
fi

if [[ $words[2] == symbolize ]] && (( CURRENT > 2 )); then
	shift words
	(( CURRENT-- ))
	_arguments -s -S \
		'(-e --exe)'{-e,--exe}'[the file that the addresses belong to]:file:_files' \
		'(-p --pid)'{-p,--pid}'[the process that they belong to]:process:_stakeout_processes' \
		'--build-id[the build-id of the file that they belong to]:build-id:' \
		'(-j --section)'{-j,--section}'[addresses count from this section]:section:' \
		'(-a --addresses)'{-a,--addresses}'[show the address first]' \
		'(-f --functions)'{-f,--functions}'[show the function]' \
		'(-i --inlines)'{-i,--inlines}'[show what it was inlined into]' \
		'(-C --demangle)'{-C,--demangle}'[show names as in the source]' \
		'--no-demangle[show names as the linker has them]' \
		'(-s --basenames)'{-s,--basenames}'[show files without directories]' \
		'--pretty-print[one line for each function]' \
		'--json[one JSON object for each address]' \
		'--no-cache[neither use nor keep the cache]' \
		'--debuginfod=-[ask debuginfod servers]::URLs:' \
		'--debuginfod-timeout[give up when nothing came for so long]:seconds:' \
		'--patience[how long to wait for memory and files that somebody else delivers]:time:' \
		'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]' \
		'*:address:'
	return
fi

if [[ $words[2] == offcpu ]] && (( CURRENT > 2 )); then
	if (( ${words[(i)--]} < CURRENT )); then # a command
		shift ${words[(i)--]} words
		(( CURRENT = ${#words} ))
		_normal
		return
	fi
	shift words
	(( CURRENT-- ))
	_arguments \
		'*'{-p,--pid}'[a process]:process:_stakeout_processes' \
		'(-a --all)'{-a,--all}'[all processes]' \
		'(-d --duration)'{-d,--duration}'[for how long]:seconds, or a time with a suffix:' \
		'--min[only waits at least as long]:time (suffixes ns, us, ms, s, min, h):' \
		'--max[only waits at most as long]:time (suffixes ns, us, ms, s, min, h):' \
		'*--state[only waits in these states]:state:((S\:sleeping D\:uninterruptible R\:"ready but without a CPU"))' \
		'(--no-children)--children[also processes that these start]' \
		'(--children)--no-children[not the processes that these start]' \
		'(--no-threads)--threads[each thread by itself]' \
		'(--threads)--no-threads[all processes of a program together]' \
		'--wakers[also who ended the wait]' \
		'(--user-only)--kernel-only[no user stacks]' \
		'(--kernel-only)--user-only[no kernel stacks]' \
		'(--raw)--no-runtime[only native frames]' \
		'(--no-runtime)--raw[also native frames that others stand for]' \
		'(--folded)--json[one JSON document]' \
		'(--json)--folded[a line for each stack, for flame graphs]' \
		'--events=-[a line of JSON for each wait]::file:_files' \
		'--hide-idle[leave out where threads only wait for work]' \
		'--top[so many threads and stacks in the text]:number:' \
		'--no-addresses[leave out the addresses of frames]' \
		'--long[do not shorten lines to fit the terminal]' \
		'(-o --output)'{-o,--output}'[write the report to a file]:file:_files' \
		'--color=[colours]:when:(auto always never)' \
		'--no-color[no colours]' \
		'--no-demangle[show names as the linker has them]' \
		'--no-cache[neither use nor keep the cache]' \
		'--debuginfod=-[ask debuginfod servers]::URLs:' \
		'--debuginfod-timeout[give up when nothing came for so long]:seconds:' \
		'--patience[how long to wait for memory and files that somebody else delivers]:time:' \
		'(-v --verbose)'{-v,--verbose}'[all stacks, and paths in full]' \
		'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]' \
		'*:process:_stakeout_processes'
	return
fi

if [[ $words[2] == setup ]] && (( CURRENT > 2 )); then
	shift words
	(( CURRENT-- ))
	_arguments -S \
		'--group=[who may run it]:group:_groups' \
		'--dry-run[only show what would be done]' \
		'--undo[take it back]' \
		'(-y --yes)'{-y,--yes}'[do not ask]' \
		'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]' \
		':file:_files'
	return
fi

if [[ $words[2] == doctor ]] && (( CURRENT > 2 )); then
	shift words
	(( CURRENT-- ))
	_arguments -S \
		'--json[one JSON document]' \
		'(-v --verbose)'{-v,--verbose}'[also how long each took]' \
		'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]' \
		':process:_stakeout_processes'
	return
fi

if [[ $words[2] == cache ]] && (( CURRENT > 2 )); then
	shift words
	(( CURRENT-- ))
	_arguments -S \
		'--clear[remove the files]' \
		'--json[one JSON document]' \
		'(-v --verbose)'{-v,--verbose}'[each file]' \
		'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]'
	return
fi

_arguments -S \
	'*'{-p,--pid}'[a process]:process:_stakeout_processes' \
	'(-r --registers)'{-r,--registers}'[show all general registers]' \
	'(--show-sp --show-rsp)'{--show-sp,--show-rsp}'[show the stack pointer of each frame]' \
	'--stop=[which threads to stop]:mode:((auto\:"none, CPUs are taken" hold\:"those that run" all\:"the whole process" none\:"no thread"))' \
	'--window=[for how long CPUs are taken at most]:time (1ms):' \
	'--no-waits[do not find out what threads wait for]' \
	'--ptrace[unwind while stopped, reading word by word]' \
	'--proc-mem[read memory through /proc/PID/mem]' \
	'--stack-size[most to copy of each stack]:bytes (suffixes k, m, g):' \
	'--stop-timeout[how long to wait for a thread to stop]:milliseconds:' \
	'--ignore-deleted[also try the path of deleted files]' \
	'--no-demangle[show names as the linker has them]' \
	'--no-cache[neither use nor keep the cache]' \
	'--debuginfod=-[ask debuginfod servers]::URLs:' \
	'--debuginfod-timeout[give up when nothing came for so long]:seconds:' \
	'--patience[how long to wait for memory and files that somebody else delivers]:time:' \
	'*'{-t,--tid}'[only this thread]:thread id:' \
	'(-a --all)'{-a,--all}'[all processes of a name that several have]' \
	'--children[also processes that these have started]' \
	'(--no-kernel)--kernel[show kernel stacks]' \
	'(--kernel)--no-kernel[do not show kernel stacks]' \
	'--depth[at most this many frames]:frames:' \
	'--brief[only the table: a line for each stack]' \
	'*--state[only threads in these states]:states:(R S D R,D T Z)' \
	'--name[only threads with such a name]:pattern:' \
	'--grep[only threads with a match in their stacks]:regular expression:' \
	'--raw[also native frames that others stand for]' \
	'--no-runtime[only native frames]' \
	'--locals[variables of Python frames]' \
	'--no-addresses[leave out the addresses of frames]' \
	'--long[do not shorten lines to fit the terminal]' \
	'--no-group[one block for each thread]' \
	'--save[also write the snapshot to a file]:file:_files' \
	'--json[one JSON document for each process]' \
	'(-o --output)'{-o,--output}'[write the report to a file]:file:_files' \
	'--color=[colours]:when:(auto always never)' \
	'--no-color[no colours]' \
	'(-v --verbose)'{-v,--verbose}'[all frames, and paths in full]' \
	'--debug[say what is tried, how it ends, and when]' \
		'(- *)'{-h,--help}'[show a summary of the options]' \
	'(- *)--version[show the version and features]' \
	'*:process:_stakeout_what'
