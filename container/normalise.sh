# Make the folder $1 the same bytes and times whenever it is built; part of the image's recipe. $2 is the interpreter that
# compiles its Python files, by default python3. An image's file that is edited later is compiled anew, as anywhere.
set -eu
set_times() { find "$1" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +; }
find "$1" -name __pycache__ -prune -exec rm -rf {} +
set_times "$1"
# One process and one seed: the order of a set, and what is compiled before, show in the bytes. Files that are templates
# or of another Python do not compile.
PYTHONHASHSEED=0 "${2:-python3}" -m compileall -q -j 1 --invalidation-mode timestamp -s "${1%/opt/scriptmode}" -p / "$1" || true
set_times "$1"
