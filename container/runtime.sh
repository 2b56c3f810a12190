# Install the runtime's package $1, with its compiled parts, below the directory $2, which becomes the image's root. A step
# of the Dockerfile.
set -eu
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
environment=$2/opt/scriptmode
packages=$environment/lib/python$version/site-packages
mkdir -p "$packages" "$environment/bin"
cp -r "$1" "$packages/"
cd "$packages"
python3 - <<'END'
from scriptmode_runtime.tensorflow import binary

binary.build("c++", binary.IN_WHEEL)
END
printf '#!/opt/scriptmode/bin/python\nimport sys\n\nfrom scriptmode_runtime.__main__ import main\n\nsys.exit(main())\n' >"$environment/bin/train"
chmod 755 "$environment/bin/train"
sh /normalise.sh "$2"
