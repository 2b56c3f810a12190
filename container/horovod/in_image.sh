# Lay Horovod out below the folder $2, as the environment of the interpreter $1 has it in the image; part of the image's
# recipe.
set -eu
wheel=$(bash "${0%/*}/build_wheel.sh" "$1")
packages=$("$1" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
"$1" -m pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check --no-deps --target "$2$packages" "$wheel"
rm -rf "$2$packages/bin"
find "$2" -name '*.so' -exec strip --strip-unneeded {} +
sh /normalise.sh "$2" "$1"
