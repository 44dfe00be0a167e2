#!/usr/bin/env bash
# Prints the manifest of a Kubeflow TFJob that trains on several workers.
#
#   IMAGE=REGISTRY/dawnbench CLAIM=imagenet scripts/launch/kubernetes.sh NAME WORKERS GPUS \
#       --recipe=imagenet/resnet50_v1_5 --data_dir=/data/shards --output_dir=/data/run | kubectl apply -f -
#
# GPUS: GPUs of each worker. IMAGE: an image with dawnbench_tf[harness,gpu]. CLAIM: a volume claim that
# all workers mount at /data. Flags are those of `dawnbench train`. A lost worker is restarted.

set -euo pipefail
# shellcheck source=run.sh
source "$(dirname "${BASH_SOURCE[0]}")/run.sh"
[ $# -gt 3 ] && [ -n "${IMAGE:-}" ] && [ -n "${CLAIM:-}" ] || usage
name=$1 workers=$2 gpus=$3; [[ "$workers$gpus" =~ ^[0-9]+$ ]] || usage
shift 3

# JSON is valid YAML and keeps each argument. Exit status 3, a missed threshold, is no failure.
# shellcheck disable=SC2016
arguments=$(python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' bash -c '"$@" || [ $? -eq 3 ]' \
    - dawnbench train --strategy=multi_worker_mirrored "$@")
cat <<MANIFEST
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: $name
spec:
  runPolicy:
    cleanPodPolicy: Running
  tfReplicaSpecs:
    Worker:
      replicas: $workers
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: tensorflow
              image: $IMAGE
              command: $arguments
              resources:
                limits:
                  nvidia.com/gpu: $gpus
              volumeMounts:
                - name: data
                  mountPath: /data
                - name: memory
                  mountPath: /dev/shm
          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: $CLAIM
            - name: memory
              emptyDir:
                medium: Memory
MANIFEST
