#!/usr/bin/env bash
# Prints the manifest of a TFJob (Kubeflow's training operator) that trains on several workers.
#
#   IMAGE=REGISTRY/dawnbench CLAIM=imagenet scripts/launch/kubernetes.sh NAME WORKERS GPUS \
#       --recipe=imagenet/resnet50_v1_5 --data_dir=/data/shards --output_dir=/data/run | kubectl apply -f -
#
# GPUS are those of a worker; IMAGE has dawnbench_tf[harness,gpu] installed; CLAIM is a volume that all
# workers mount at /data. Flags are those of `dawnbench train`. A worker that is lost starts again.

set -euo pipefail
# shellcheck source=run.sh
source "$(dirname "${BASH_SOURCE[0]}")/run.sh"
[ $# -gt 3 ] && [ -n "${IMAGE:-}" ] && [ -n "${CLAIM:-}" ] || usage
name=$1 workers=$2 gpus=$3
shift 3

# YAML reads JSON: each argument as it was given. 3, the threshold was not reached, is no failure.
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
