# Make the directory $1 reproducible: the same bytes and times in every build. A step of the Dockerfile. $2 is the
# interpreter that compiles its Python files, by default python3. Python still recompiles a file that is edited later.
set -eu
set_times() { find "$1" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +; }
find "$1" -name __pycache__ -prune -exec rm -rf {} +
set_times "$1"
# One process and one hash seed, because the order of sets and of compilation changes the bytes. Templates and files for
# other Python versions do not compile.
PYTHONHASHSEED=0 "${2:-python3}" -m compileall -q -j 1 --invalidation-mode timestamp -s "${1%/opt/scriptmode}" -p / "$1" || true
set_times "$1"
