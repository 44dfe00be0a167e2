# Sourced by the launchers: `usage`, and `run`, which only prints the command if DRY_RUN=1.
# shellcheck shell=bash

# Prints the comment at the head of the running script and exits.
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
