#!/usr/bin/env bash
# The whole test suite, as CI runs it: installs into .venv, ruff, mypy, the models under Keras 3,
# then all under tf-keras. Arguments go to pytest instead of the first of these two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh
make_venv "[test]"
.venv/bin/ruff format --check --quiet . || fail "some files are not formatted; run .venv/bin/ruff format"
.venv/bin/ruff check --quiet .
.venv/bin/mypy --no-error-summary
if [ $# -eq 0 ]; then
    TF_USE_LEGACY_KERAS=0 .venv/bin/python -m pytest -q -n 2 --dist worksteal tests/models tests/conformance/test_catalog.py
fi
exec .venv/bin/python -m pytest -q -n 2 --dist worksteal "$@"
