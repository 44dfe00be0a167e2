#!/usr/bin/env bash
# Creates a Cloud TPU VM, installs the checked-out commit, trains, copies the run back, deletes the VM.
#
#   ZONE=us-central1-a TYPE=v3-8 scripts/launch/tpu_vm.sh NAME --recipe=imagenet/resnet50_tpu \
#       --data_dir=DIR
#
# Flags are those of `dawnbench train`. DIR: a folder on the VM. DISK: a disk with the shards, which is
# attached and mounted at /data. VERSION (tpu-ubuntu2204-base): the VM's software. DRY_RUN=1 prints the
# commands. If training is interrupted, the VM is kept and the same command resumes.

set -euo pipefail
# shellcheck source=run.sh
source "$(dirname "${BASH_SOURCE[0]}")/run.sh"
[ $# -gt 1 ] && [ -n "${ZONE:-}" ] && [ -n "${TYPE:-}" ] || usage
name=$1
shift
tpu=(gcloud compute tpus tpu-vm)
where=("--zone=$ZONE")
disk=()
[ -z "${DISK:-}" ] || disk=("--data-disk=source=$DISK,mode=read-only")

on_vm() {
    run "${tpu[@]}" ssh "$name" "${where[@]}" "--command=$1"
}

if [ -n "${DRY_RUN:-}" ] || ! "${tpu[@]}" describe "$name" "${where[@]}" >/dev/null 2>&1; then
    run "${tpu[@]}" create "$name" "${where[@]}" "--accelerator-type=$TYPE" \
        "--version=${VERSION:-tpu-ubuntu2204-base}" "${disk[@]}"
fi
run git -C "$(dirname "${BASH_SOURCE[0]}")/../.." archive --prefix=dawnbench_tf/ -o /tmp/dawnbench_tf.tar HEAD
run "${tpu[@]}" scp /tmp/dawnbench_tf.tar "$name:" "${where[@]}"
on_vm 'tar xf dawnbench_tf.tar && pip install -q "./dawnbench_tf[harness]" &&
    pip install -q --no-deps --force-reinstall "tensorflow-tpu==2.20.*" "libtpu==0.0.20"'
[ -z "${DISK:-}" ] || on_vm 'mountpoint -q /data || (sudo mkdir -p /data && sudo mount -o ro,noload /dev/sdb /data)'
status=0
on_vm "\$HOME/.local/bin/dawnbench train --strategy=tpu --tpu=local --output_dir=run ${*@Q}" || status=$?
if run "${tpu[@]}" scp --recurse "$name:run" . "${where[@]}" && [[ "$status" == [03] ]]; then
    run "${tpu[@]}" delete "$name" "${where[@]}" --quiet
else
    echo "tpu_vm.sh: $name is kept and costs money; delete it with: ${tpu[*]} delete $name ${where[*]}" >&2
fi
exit "$status"
