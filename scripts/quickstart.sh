#!/usr/bin/env bash
# From a fresh clone to a first entry: installs into .venv, trains the embedded digits to 98 %.
# Further arguments go to dawnbench_tf.train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh
make_venv "[harness]"
exec .venv/bin/python -m dawnbench_tf.train "$@"
