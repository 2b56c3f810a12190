# Lay the runtime's package $1 out below the environment $2, with its compiled parts; part of the image's recipe.
set -eu
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages=$2/lib/python$version/site-packages
mkdir -p "$packages" "$2/bin"
cp -r "$1" "$packages/"
cd "$packages"
python3 - <<'END'
from scriptmode_runtime.tensorflow import binary

binary.build("c++", binary.IN_WHEEL)
END
find . -name __pycache__ -prune -exec rm -rf {} +
python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash .
printf '#!/opt/scriptmode/bin/python\nimport sys\n\nfrom scriptmode_runtime.__main__ import main\n\nsys.exit(main())\n' >"$2/bin/train"
chmod 755 "$2/bin/train"
