#!/usr/bin/env bash
# Trains on machines of a SLURM cluster, a worker on each; a lost one requeues the job, which goes on.
#
#   sbatch --nodes=16 --gpus-per-node=8 scripts/launch/slurm.sh --recipe=imagenet/resnet50_v1_5 \
#       --batch_size=32768 --data_dir=DIR --output_dir=SHARED
#
# Flags are those of `dawnbench train`; DIR and SHARED are folders that all machines see. DRY_RUN=1
# shows the commands. DAWNBENCH names the program, if it is not on the machines' PATH.

#SBATCH --job-name=dawnbench
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
# SLURM runs a copy of this file: the folder is that from which the job was submitted.
here=${SLURM_SUBMIT_DIR:+$SLURM_SUBMIT_DIR/scripts/launch}
# shellcheck source=run.sh
source "${here:-$(dirname "${BASH_SOURCE[0]}")}/run.sh"
[ $# -gt 0 ] || usage

# 3 says that the threshold was not reached: that is a result, no failure.
# shellcheck disable=SC2016
ends_well='"$@" || [ $? -eq 3 ]'
run srun --kill-on-bad-exit=1 bash -c "$ends_well" - \
    "${DAWNBENCH:-dawnbench}" train --strategy=multi_worker_mirrored "$@" ||
    run scontrol requeue "${SLURM_JOB_ID:?is not set: this is for sbatch}"
