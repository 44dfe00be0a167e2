#!/usr/bin/env bash
# The whole test suite, as CI runs it: installs into .venv, ruff, pytest. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh
make_venv "[test]"
.venv/bin/ruff format --check --quiet . || fail "some files are not formatted; run .venv/bin/ruff format"
.venv/bin/ruff check --quiet .
exec .venv/bin/python -m pytest -q "$@"
