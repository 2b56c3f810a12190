# Copy what was added or changed since the file $1 was written to the folder $2, with owners and modes; part of the image's
# recipe. What belongs to apt's work, to the build, or to one machine alone (host keys) is left out.
set -eu
mkdir -p "$2/opt/scriptmode/share/sbom"
dpkg-query --show --showformat '${Package}=${Version}\n' >"$2/opt/scriptmode/share/sbom/debian.txt"
rm -f /etc/ssh/ssh_host_*
mkdir -p /run/sshd
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /settings -o -path "$2" \
    -o -path /var/lib/apt/lists -o -path /var/cache -o -path /var/log -o -path /usr/share/doc -o -path /usr/share/man \) -prune \
    -o \( -type f -o -type l -o -type d -empty \) -cnewer "$1" ! -path "$1" ! -path "$0" \
    ! -path /etc/hosts ! -path /etc/hostname ! -path /etc/resolv.conf ! -path '/var/lib/dpkg/*-old' -print0 |
    tar --create --null --no-recursion --files-from=- | tar --extract --directory "$2"
