# Sourced by the launchers: `usage` and `run`, which with DRY_RUN=1 only shows a command.
# shellcheck shell=bash

# Prints the head of the script that is running, its manual, and ends it.
usage() {
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 1
}

run() {
    if [ -n "${DRY_RUN:-}" ]; then
        printf '%s\n' "${*@Q}"
    else
        "$@"
    fi
}
