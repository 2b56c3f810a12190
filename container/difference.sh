# Copy all files that were added or changed after the file $1 was written to the directory $2, with owners and modes. A step
# of the Dockerfile. Files of apt and of the build are left out. Files from packages keep
# their times; every other file gets SOURCE_DATE_EPOCH, so that the same packages produce the same directory.
set -eu
mkdir -p "$2"
# Debian compiles Python's library while it installs it, and the result differs from build to build.
find /usr/lib/python3* -name '*.pyc' -delete
PYTHONHASHSEED=0 python3 -m compileall -q -j 1 --invalidation-mode timestamp /usr/lib/python3* || true
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /settings -o -path "$2" \
    -o -path /var/lib/apt/lists -o -path /var/cache -o -path /var/log -o -path /usr/share/doc -o -path /usr/share/man \) -prune \
    -o \( -type f -o -type l -o -type d -empty \) -cnewer "$1" ! -path "$1" ! -path "$0" \
    ! -path /etc/hosts ! -path /etc/hostname ! -path /etc/resolv.conf ! -path '/var/lib/dpkg/*-old' -print0 |
    sort --zero-terminated |
    tar --create --null --no-recursion --files-from=- | tar --extract --directory "$2"
find "$2" -newer "$1" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-1767225600}" {} +
