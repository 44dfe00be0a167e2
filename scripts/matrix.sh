#!/usr/bin/env bash
# Installs the base library with each Python and TensorFlow that setup.py allows, each pair in an
# environment of its own, and runs the tests that need nothing else. Prints rows of the table in
# docs/install.md; the whole output of pytest is in FOLDER. Half an hour on two cores.
#   scripts/matrix.sh FOLDER [PYTHON:TENSORFLOW ...]     e.g. scripts/matrix.sh /tmp/matrix 3.12:2.21
# A Python is searched for on PATH (python3.12), then among pyenv's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PAIRS=(3.11:2.18 3.11:2.19 3.11:2.20 3.11:2.21 3.12:2.18 3.12:2.21 3.13:2.20 3.13:2.21)
TESTS=(tests/models/test_models.py tests/models/test_cifar_resnets.py tests/models/test_drqas.py
    tests/models/weights tests/test_tta.py tests/test_clock.py tests/submission/test_entry.py)

fail() { echo "matrix.sh: $*" >&2; exit 1; }

python_of() { # VERSION: the path of its interpreter
    local candidate
    for candidate in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c 'import venv' 2>/dev/null; then # a shim of pyenv's may lead nowhere
            echo "$candidate"
            return
        fi
    done
}

try() { # PYTHON TENSORFLOW: installs and tests one pair; prints its row
    local python venv=$folder/venv-$1-$2 log=$folder/$1-$2.log result
    python=$(python_of "$1")
    [ -n "$python" ] || { echo "| $1 | $2 | not tried: no python$1 here |"; return; }
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check . "tensorflow==$2.*" \
        pytest pytest-xdist hypothesis scipy >"$log" 2>&1 || { echo "| $1 | $2 | does not install: $log |"; return; }
    result=$(TF_USE_LEGACY_KERAS=0 "$venv/bin/python" -m pytest -q -n 2 -p no:cacheprovider -W default "${TESTS[@]}" 2>&1 |
        tee -a "$log" | grep -E '^[0-9]+ (passed|failed|error)|^ImportError|^ERROR' | tail -1 | sed 's/ in .*//') || : # a row says what failed
    echo "| $1 | $("$venv/bin/pip" show tensorflow | sed -n 's/^Version: //p'), Keras $("$venv/bin/pip" show keras | sed -n 's/^Version: //p') | $result |"
    rm -rf "$venv"
}

[ $# -gt 0 ] || fail "name a FOLDER for environments and logs"
folder=$1
shift
mkdir -p "$folder"
[ $# -eq 0 ] || PAIRS=("$@")
for pair in "${PAIRS[@]}"; do
    try "${pair%:*}" "${pair#*:}"
done
