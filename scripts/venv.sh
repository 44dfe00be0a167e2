# shellcheck shell=bash
# Sourced by quickstart.sh, docs.sh and test.sh: creates .venv in the project's root and installs into it.
#   make_venv EXTRAS    EXTRAS: "[harness]", "[docs]" or "[test]"

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "needs Python 3.11, 3.12 or 3.13 with venv on PATH; install it (Debian: apt-get install python3-venv) and run this again"
}

make_venv() {
    local extras=$1 python free pins stamp
    pins=.venv/.installed-$(cat setup.py constraints.txt <(echo "$PWD") | cksum | cut -d' ' -f1)
    stamp=$pins-$extras
    [ -e "$stamp" ] && return
    python=$(find_python) || exit 1
    free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1048576)}')
    [ "$free" -ge 5 ] || fail "needs 5 GB of free disk for TensorFlow in $PWD/.venv, found $free GB; free some and run this again"
    echo "installing into $PWD/.venv (about two minutes, once)"
    "$python" -m venv .venv || fail "could not make .venv; see the lines above"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        -c constraints.txt -e ".$extras" || fail "could not install; see the lines above"
    find .venv -maxdepth 1 -name ".installed-*" ! -path "$pins-*" -delete # of other versions, which are replaced
    touch "$stamp"
}
