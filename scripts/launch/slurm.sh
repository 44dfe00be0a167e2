#!/usr/bin/env bash
# Trains on a SLURM cluster, one worker per machine; a lost machine requeues and resumes the job.
#
#   sbatch --nodes=16 --gpus-per-node=8 scripts/launch/slurm.sh --recipe=imagenet/resnet50_v1_5 \
#       --batch_size=32768 --data_dir=DIR --output_dir=SHARED
#
# Flags are those of `dawnbench train`. DIR and SHARED: folders on a file system that all machines
# share. DRY_RUN=1 prints the commands. DAWNBENCH: path of the program if it is not on PATH. REQUEUES (20): at most, as a refused command fails each time.

#SBATCH --job-name=dawnbench
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
# SLURM runs a copy of this file, so paths start at the folder from which the job was submitted.
here=${SLURM_SUBMIT_DIR:+$SLURM_SUBMIT_DIR/scripts/launch}
# shellcheck source=run.sh
source "${here:-$(dirname "${BASH_SOURCE[0]}")}/run.sh"
[ $# -gt 0 ] || usage

# Exit status 3, a missed threshold, is a result and no failure.
# shellcheck disable=SC2016
ends_well='"$@" || [ $? -eq 3 ]'
run srun --kill-on-bad-exit=1 bash -c "$ends_well" - \
    "${DAWNBENCH:-dawnbench}" train --strategy=multi_worker_mirrored "$@" && exit
[ "${SLURM_RESTART_COUNT:-0}" -lt "${REQUEUES:-20}" ] || { echo "slurm.sh: requeued ${REQUEUES:-20} times" >&2; exit 1; }
run scontrol requeue "${SLURM_JOB_ID:?is not set: this is for sbatch}"
