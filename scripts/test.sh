#!/usr/bin/env bash
# Checks the whole project, as CI does; `scripts/test.sh --help` lists the modes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
{ true <&0; } 2>/dev/null || exec </dev/null # if stdin is closed, a test's file would get number 0
source scripts/venv.sh

usage() {
    cat <<'END'
scripts/test.sh                  the default suite, as CI runs it: ruff, mypy,
                                 models' tests under Keras 3, all under tf-keras
scripts/test.sh --long           the tests that the default leaves out: every
                                 row in full size, a kill at each operation on
                                 files, 10,000 damaged files of each kind; ends
                                 in a summary
scripts/test.sh --lint           ruff and mypy alone
scripts/test.sh --changed [REV]  the tests that import files changed since git
                                 REV (HEAD), the nearest first, for 30 seconds
scripts/test.sh ARGUMENT ...     arguments of pytest: a file, -k NAME, -m long
END
}

tests() { .venv/bin/python -m pytest -q -n 2 --dist worksteal "$@"; }

under_keras_3() { TF_USE_LEGACY_KERAS=0 tests "$@" tests/models tests/conformance/test_catalog.py tests/test_tta.py; }

lint() {
    .venv/bin/ruff format --check --quiet . || fail "some files are not formatted; run .venv/bin/ruff format"
    .venv/bin/ruff check --quiet .
    .venv/bin/mypy --no-error-summary
}

changed() {
    local output arguments
    output=$(.venv/bin/python scripts/changed_tests.py "$@") || exit 1
    [ -n "$output" ] || { echo "no file has changed since ${1:-HEAD}"; exit; }
    mapfile -t arguments <<<"$output"
    exec .venv/bin/python -m pytest -q -n 2 --dist load --maxschedchunk=1 --seconds=30 "${arguments[@]}"
}

part() { # NAME COMMAND ...: runs the command; adds its result and duration to the summary
    local name=$1 begin=$SECONDS ended=passed
    shift
    echo "== $name"
    "$@" || ended=FAILED
    summary+=("$(printf '%-52s %s %6d s' "$name" "$ended" $((SECONDS - begin)))")
}

faults() { # runs one half on each of two cores
    local kills status=0
    .venv/bin/python scripts/faults.py --kills=200 --studies=200 --failures=200 --mutations=0 &
    kills=$!
    .venv/bin/python scripts/faults.py --kills=0 --studies=0 --failures=0 --mutations=10000 || status=1
    wait "$kills" || status=1
    return "$status"
}

long() {
    summary=()
    trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
    part "under Keras 3: what the default leaves out" under_keras_3 -m "long or not both_kerases"
    part "under tf-keras: what the default leaves out" tests -m long
    part "properties: examples at random" tests -m hypothesis --hypothesis-profile=default
    part "kills, failing files, damaged files" faults
    echo "== summary"
    printf '%s\n' "${summary[@]}"
    [[ "${summary[*]}" != *FAILED* ]]
}

[ "${1:-}" != --help ] || { usage; exit; }
make_venv "[test]"
case "${1:-}" in
    --lint) lint; exit ;;
    --long) long; exit ;;
    --changed) lint; changed "${@:2}" ;;
esac
lint
[ $# -eq 0 ] || { tests "$@"; exit; }
under_keras_3 -p tests.costs -m "both_kerases and not long"
tests -p tests.costs
