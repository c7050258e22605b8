# SPDX-License-Identifier: MIT
# bash completion for stakeout

_stakeout_processes() {
	echo /proc/[0-9]* | tr ' ' '\n' | sed 's,/proc/,,'
	cat /proc/[0-9]*/comm 2>/dev/null | grep -v '[^[:alnum:]._-]' | sort -u
}

_stakeout_symbolize() {
	local cur=$1 prev=$2
	local options="--exe --pid --build-id --section --addresses --functions --inlines --demangle --no-demangle
		--basenames --pretty-print --json --no-cache --debuginfod --debuginfod-timeout --patience --debug --help -e -p -j -a -f -i -C -s -h"

	case $prev in
	--exe | -e) COMPREPLY=($(compgen -f -- "$cur")) ;;
	--pid | -p) COMPREPLY=($(compgen -W "$(_stakeout_processes)" -- "$cur")) ;;
	--demangle) COMPREPLY=($(compgen -W "auto none" -- "$cur")) ;;
	--build-id | --section | -j | --debuginfod-timeout | --patience) COMPREPLY=() ;;
	*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;
	esac
}

_stakeout_offcpu() {
	local cur=$1 prev=$2 i
	local options="--pid --all --duration --min --max --state --children --no-children --threads --no-threads --wakers
		--kernel-only --user-only --no-runtime --json --folded --events --hide-idle --top --raw --no-addresses --long --output --color= --no-color --no-demangle
		--no-cache --debuginfod --debuginfod-timeout --patience --debug --verbose --help -p -a -d -o -v -h --"

	# behind -- comes a command
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] || continue
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		elif ((i + 1 == COMP_CWORD)); then
			COMPREPLY=($(compgen -c -- "$cur"))
		else
			COMPREPLY=($(compgen -f -- "$cur"))
		fi
		return
	done

	# --events takes a file only behind =, which bash makes a word of its own
	if [[ $prev == --events && ( ${COMP_WORDS[COMP_CWORD]} == "=" || ${COMP_WORDS[COMP_CWORD - 1]} == "=" ) ]]; then
		COMPREPLY=($(compgen -f -- "$cur"))
		return
	fi

	case $prev in
	--duration | -d) COMPREPLY=($(compgen -W "5 10 30 1min" -- "$cur")) ;;
	--min | --max) COMPREPLY=($(compgen -W "0 10us 100us 1ms 10ms 100ms 1s" -- "$cur")) ;;
	--state) COMPREPLY=($(compgen -W "S D R S,D" -- "$cur")) ;;
	--color) COMPREPLY=($(compgen -W "auto always never" -- "$cur")) ;;
	--output | -o) COMPREPLY=($(compgen -f -- "$cur")) ;;
	--debuginfod-timeout | --patience | --top) COMPREPLY=() ;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$options" -- "$cur"))
			[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
		else
			COMPREPLY=($(compgen -W "$(_stakeout_processes)" -- "$cur"))
		fi
		;;
	esac
}

_stakeout() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local options="--pid --tid --all --children --stop= --window --stop-timeout --stack-size --proc-mem --no-waits --ptrace --save --registers --show-sp
		--show-rsp --kernel --no-kernel --depth --brief --state --name --grep --raw --no-runtime --locals --no-addresses --long --no-group --json --output --color= --no-color --ignore-deleted
		--no-demangle --no-cache --debuginfod --debuginfod-timeout --patience --debug --verbose --help --version -p -t -a -r -o -v -h"

	# bash splits --stop=auto into three words
	if [[ $cur == "=" ]]; then
		cur=
	elif [[ $prev == "=" ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi

	if [[ ${COMP_WORDS[1]} == symbolize && $COMP_CWORD -gt 1 ]]; then
		_stakeout_symbolize "$cur" "$prev"
		return
	fi
	if [[ ${COMP_WORDS[1]} == offcpu && $COMP_CWORD -gt 1 ]]; then
		_stakeout_offcpu "$cur" "$prev"
		return
	fi
	if [[ ${COMP_WORDS[1]} == help && $COMP_CWORD -gt 1 ]]; then
		COMPREPLY=($(compgen -W "snapshot why watch offcpu replay symbolize cache doctor setup version" -- "$cur"))
		return
	fi
	if [[ ${COMP_WORDS[1]} == why && $COMP_CWORD -gt 1 ]]; then
		options="--pid --all --children --stop --window --stop-timeout --stack-size --proc-mem --json --dot --output --color --no-color
			--no-demangle --no-cache --debuginfod --debuginfod= --debuginfod-timeout --patience --verbose --debug --help -p -a -o -v -h"
	fi
	if [[ ${COMP_WORDS[1]} == watch && $COMP_CWORD -gt 1 ]]; then
		options="--interval --looks --pid --all --children --stop --window --stop-timeout --stack-size --proc-mem --json --output --color --no-color
			--no-demangle --no-cache --debuginfod --debuginfod= --debuginfod-timeout --patience --verbose --debug --help -i -n -p -a -o -v -h"
	fi
	if [[ ${COMP_WORDS[1]} == version && $COMP_CWORD -gt 1 ]]; then
		COMPREPLY=()
		return
	fi
	if [[ ${COMP_WORDS[1]} == doctor && $COMP_CWORD -gt 1 ]]; then
		COMPREPLY=($(compgen -W "--json --verbose --debug --help -v -h $(_stakeout_processes)" -- "$cur"))
		return
	fi
	if [[ ${COMP_WORDS[1]} == setup && $COMP_CWORD -gt 1 ]]; then
		if [[ $prev == --group ]]; then
			COMPREPLY=($(compgen -g -- "$cur"))
		else
			COMPREPLY=($(compgen -f -W "--group --dry-run --undo --yes --debug --help -y -h" -- "$cur"))
		fi
		return
	fi
	if [[ ${COMP_WORDS[1]} == cache && $COMP_CWORD -gt 1 ]]; then
		COMPREPLY=($(compgen -W "--clear --json --verbose --debug --help -v -h" -- "$cur"))
		return
	fi

	case $prev in
	--stop) COMPREPLY=($(compgen -W "auto hold all none" -- "$cur")) ;;
	--color) COMPREPLY=($(compgen -W "auto always never" -- "$cur")) ;;
	--save | --output | -o) COMPREPLY=($(compgen -f -- "$cur")) ;;
	--state) COMPREPLY=($(compgen -W "R S D R,D T Z" -- "$cur")) ;;
	--stack-size) COMPREPLY=($(compgen -W "64k 1m 8m" -- "$cur")) ;;
	--interval | -i) COMPREPLY=($(compgen -W "100ms 1s 10s 1min" -- "$cur")) ;;
	--looks | -n) COMPREPLY=($(compgen -W "0 10 60" -- "$cur")) ;;
	--stop-timeout | --window | --depth | --name | --grep | --tid | -t | --debuginfod-timeout | --patience) COMPREPLY=() ;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$options" -- "$cur"))
			[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
		elif [[ ${COMP_WORDS[1]} == replay && $COMP_CWORD -gt 1 ]]; then
			COMPREPLY=($(compgen -f -- "$cur"))
		else
			COMPREPLY=($(compgen -W "snapshot why watch replay symbolize offcpu cache doctor setup help version $(_stakeout_processes)" -- "$cur"))
		fi
		;;
	esac
}
complete -F _stakeout stakeout
