#!/usr/bin/env bash
# Trains on several machines over ssh, one worker per machine; Ctrl-C ends all.
#
#   scripts/launch/ssh.sh HOST1,HOST2 --recipe=imagenet/resnet50_v1_5 --data_dir=DIR --output_dir=SHARED
#
# Flags are those of `dawnbench train`. DIR and SHARED: folders on a file system that all hosts share.
# DRY_RUN=1 prints the commands. PORT (2222): port of the workers. DAWNBENCH: path of the program if it
# is not on the hosts' PATH. If a host is lost, the same command resumes from the last epoch.

set -euo pipefail
# shellcheck source=run.sh
source "$(dirname "${BASH_SOURCE[0]}")/run.sh"
[ $# -gt 1 ] || usage
if [[ $1 == -* ]]; then
    printf '%s: should be HOST1,HOST2; flags come after the hosts\n' "$1" >&2
    usage
fi
IFS=, read -ra hosts <<<"$1"
shift
workers=$(printf ",%s:${PORT:-2222}" "${hosts[@]}")
workers=${workers#,}

pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
for index in "${!hosts[@]}"; do
    command=("${DAWNBENCH:-dawnbench}" train --strategy=multi_worker_mirrored
        "--worker_hosts=$workers" "--task_index=$index" "$@")
    # -tt ends the program on the host together with the connection.
    run ssh -tt -o BatchMode=yes "${hosts[index]}" "${command[*]@Q}" </dev/null &
    pids+=($!)
    [ -z "${DRY_RUN:-}" ] || wait "$!"
done
worst=0
for pid in "${pids[@]}"; do
    wait "$pid" || worst=$?
done
exit "$worst"
