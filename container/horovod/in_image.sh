# Install Horovod for the interpreter $1 below the directory $2, which becomes the image's root. A step of the Dockerfile.
set -eu
wheel=$(bash "${0%/*}/build_wheel.sh" "$1")
packages=$("$1" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
"$1" -m pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check --no-deps --target "$2$packages" "$wheel"
rm -rf "$2$packages/bin"
find "$2" -name '*.so' -exec strip --strip-unneeded {} +
sh /normalise.sh "$2" "$1"
