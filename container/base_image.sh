#!/usr/bin/env bash
# See that Docker has the image debian:bookworm-slim: pull it, or make one like it where no registry is in reach.
#
#     base_image.sh [NAME]
#
# Made with debootstrap (as root) from the mirror that this machine's apt uses, without documentation and translations,
# as Debian's own slim images are. It trusts the certificate authorities that were added to this machine's, so that
# programs in containers reach what programs here reach. Made ones are kept in
# ${XDG_CACHE_HOME:-~/.cache}/scriptmode/images; remove them there to get Debian's newer packages.
set -euo pipefail

readonly NAME=${1:-debian:bookworm-slim}
readonly RELEASE=bookworm
readonly PULL_SECONDS=300
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/scriptmode/images
readonly AUTHORITIES=/usr/local/share/ca-certificates
# Folders of what only people read; licences stay.
readonly FOR_PEOPLE=(doc-base groff info lintian linda locale man)

say() { printf 'base image: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

authorities() { find "$AUTHORITIES" -name '*.crt' -type f 2>/dev/null | sort; }

# The first repository of this machine's apt that is Debian's own, or nothing, which means debootstrap's default.
mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk '$2 == "Debian" && $3 !~ /-/ && $4 == "main" { print $1; exit }'
}

# Take out of the tree $1 what belongs to the machine that made it, and what only people read.
slim() {
    local name
    for name in "${FOR_PEOPLE[@]}"; do rm -rf "$1/usr/share/$name"; done
    find "$1/usr/share/doc" -type f ! -name copyright ! -path '*/apt/examples/sources.list' -delete
    # Debian's own list of places, whatever mirror these packages came from.
    mv "$1/usr/share/doc/apt/examples/sources.list" "$1/etc/apt/sources.list"
    sed -i -E '/^deb /!d; s/ main .*/ main/' "$1/etc/apt/sources.list"
    find "$1/usr/share/doc" -mindepth 1 \( -type l -o -type d -empty \) -delete
    printf 'path-exclude /usr/share/%s/*\n' "${FOR_PEOPLE[@]}" doc >"$1/etc/dpkg/dpkg.cfg.d/slim"
    echo 'path-include /usr/share/doc/*/copyright' >>"$1/etc/dpkg/dpkg.cfg.d/slim"
    printf 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n' >"$1/etc/apt/apt.conf.d/slim"
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d" && chmod +x "$1/usr/sbin/policy-rc.d"
    rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/debootstrap
    rm -f "$1"/etc/{hostname,resolv.conf} "$1"/var/cache/ldconfig/aux-cache
    find "$1/var/log" -type f -delete
    : >"$1/etc/machine-id"
}

trust() {
    local file
    mkdir -p "$1$AUTHORITIES" "$1/etc/ssl/certs"
    authorities | while read -r file; do cp "$file" "$1$AUTHORITIES/"; done
    # Where ca-certificates is installed later, it makes this file anew, of its own ones and those above.
    if [ -s /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"; fi
}

need_debootstrap() {
    say "no registry has $NAME; installing debootstrap, which makes it"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends debootstrap; } >&2 ||
        fail "debootstrap cannot be installed; install it, or pull $NAME from a registry"
}

# Write a tar of the base image to $1.
make_tar() {
    [ "$(id -u)" -eq 0 ] || fail "no registry has $NAME, and making it takes root; run as root: $0 $NAME"
    PATH=$PATH:/usr/sbin:/sbin
    command -v debootstrap >/dev/null || need_debootstrap
    # Not local: the trap runs when main has returned.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    say "no registry gives $NAME; making it with debootstrap: about a minute"
    debootstrap --variant=minbase "$RELEASE" "$work/tree" $(mirror) >"$work/log" 2>&1 ||
        fail "debootstrap failed: $(tail -3 "$work/log" "$work/tree/debootstrap/debootstrap.log" 2>/dev/null | tr '\n' ' ')"
    slim "$work/tree"
    trust "$work/tree"
    tar --create --file "$1" --directory "$work/tree" --numeric-owner --sort=name --one-file-system .
}

main() {
    local key tar
    if docker image inspect "$NAME" >/dev/null 2>&1; then exit 0; fi
    docker version >/dev/null 2>&1 || fail "no Docker daemon answers; start one first"
    if [ "${NAME%%:*}" = debian ] && timeout $PULL_SECONDS docker pull --quiet "$NAME" >/dev/null 2>&1; then exit 0; fi
    key=$({ cat "${BASH_SOURCE[0]}" && uname -m && authorities | xargs -r cat; } | sha256sum | cut -c1-12)
    tar=$CACHE/$RELEASE-slim-$key.tar
    mkdir -p "$CACHE"
    exec 9>"$tar.lock"
    flock 9
    if docker image inspect "$NAME" >/dev/null 2>&1; then exit 0; fi
    if [ ! -e "$tar" ]; then
        make_tar "$tar.part"
        # Complete or not there at all.
        mv "$tar.part" "$tar"
    fi
    docker import --change 'CMD ["bash"]' --message "debootstrap --variant=minbase $RELEASE" "$tar" "$NAME" >/dev/null
    say "$NAME is there, after $SECONDS s"
}

main "$@"
