# Copy what was added or changed since the file $1 was written to the folder $2, with owners and modes; part of the image's
# recipe. What belongs to apt's work, to the build, or to one machine alone (host keys) is left out. Files that packages
# brought keep their times; every other file gets SOURCE_DATE_EPOCH, so that the same packages make the same folder.
set -eu
mkdir -p "$2" /run/sshd
rm -f /etc/ssh/ssh_host_*
# Debian's own compiling of Python's library does not make the same bytes each time.
find /usr/lib/python3* -name '*.pyc' -delete
PYTHONHASHSEED=0 python3 -m compileall -q -j 1 --invalidation-mode timestamp /usr/lib/python3* || true
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /settings -o -path "$2" \
    -o -path /var/lib/apt/lists -o -path /var/cache -o -path /var/log -o -path /usr/share/doc -o -path /usr/share/man \) -prune \
    -o \( -type f -o -type l -o -type d -empty \) -cnewer "$1" ! -path "$1" ! -path "$0" \
    ! -path /etc/hosts ! -path /etc/hostname ! -path /etc/resolv.conf ! -path '/var/lib/dpkg/*-old' -print0 |
    sort --zero-terminated |
    tar --create --null --no-recursion --files-from=- | tar --extract --directory "$2"
find "$2" -newer "$1" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-1767225600}" {} +
