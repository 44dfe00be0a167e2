#!/usr/bin/env bash
# Builds docs/ as a site with search in build/site; a broken link, anchor or docstring fails.
# Arguments are passed to `mkdocs build`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh
make_venv "[docs]"
export NO_MKDOCS_2_WARNING=1 PATH="$PWD/.venv/bin:$PATH"
exec mkdocs build --quiet --strict --config-file scripts/mkdocs.yml "$@"
