#!/usr/bin/env bash
# Print the name of a Debian 12 image in Docker, as the base of training images. If no registry provides
# debian:bookworm-slim, create a similar image with another name.
#
#     base_image.sh [--refresh]
#
# The image is created with debootstrap (as root) from the mirror that this machine's apt uses, without documentation and
# translations, as Debian's own slim images, and contains nothing of this machine. It is cached in
# ${XDG_CACHE_HOME:-~/.cache}/scriptmode/images. --refresh pulls or creates it again, with Debian's newest packages.
set -euo pipefail

readonly DEBIAN=debian:bookworm-slim
readonly NAME=scriptmode-base:bookworm
readonly RELEASE=bookworm
readonly PULL_SECONDS=300
readonly AUTHORITIES=/etc/ssl/certs/ca-certificates.crt
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/scriptmode/images
# Directories with documentation and translations; licenses are kept.
readonly FOR_PEOPLE=(doc-base groff info lintian linda locale man)

say() { printf 'base image: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

# Print the first Debian repository of this machine's apt whose codename matches $1.
repository() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk -v wanted="$1" '$2 == "Debian" && $3 ~ wanted && $4 == "main" { print $1; exit }'
}

mirror() {
    local found
    found=$(repository '^[a-z]+$')
    echo "${found:-http://deb.debian.org/debian}"
}

# Install Debian's security updates in the tree $1: debootstrap installs only the packages of the release.
update() {
    local security
    security=$(repository '^[a-z]+-security$')
    printf 'deb %s main\n' "$(mirror) $RELEASE" "$(mirror) $RELEASE-updates" \
        "${security:-http://deb.debian.org/debian-security} $RELEASE-security" >"$1/etc/apt/sources.list"
    cp /etc/resolv.conf "$1/etc/"
    # Only during the download, for mirrors that use https.
    mkdir -p "$1/etc/ssl/certs"
    if [ -s $AUTHORITIES ]; then cp $AUTHORITIES "$1/etc/ssl/certs/"; fi
    chroot "$1" sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq upgrade --yes"
    rm -f "$1$AUTHORITIES"
}

# Remove files of the machine that built the tree $1, documentation and translations from it.
slim() {
    local name
    for name in "${FOR_PEOPLE[@]}"; do rm -rf "$1/usr/share/$name"; done
    find "$1/usr/share/doc" -type f ! -name copyright ! -path '*/apt/examples/sources.list' -delete
    # Debian's default sources.list, independent of the mirror that was used.
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

need_debootstrap() {
    say "no registry provides $DEBIAN; installing debootstrap to create a similar image"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends debootstrap; } >&2 ||
        fail "debootstrap cannot be installed; install it, or pull $DEBIAN from a registry"
}

# Write the base image as a tar file to $1.
make_tar() {
    [ "$(id -u)" -eq 0 ] || fail "no registry provides $DEBIAN, and creating a similar image needs root; run as root: $0"
    PATH=$PATH:/usr/sbin:/sbin
    command -v debootstrap >/dev/null || need_debootstrap
    # Not local: the trap runs when main has returned.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    say "no registry provides $DEBIAN; creating a similar image with debootstrap: about a minute"
    debootstrap --variant=minbase "$RELEASE" "$work/tree" "$(mirror)" >"$work/log" 2>&1 ||
        fail "debootstrap failed: $(tail -3 "$work/log" "$work/tree/debootstrap/debootstrap.log" 2>/dev/null | tr '\n' ' ')"
    update "$work/tree" >>"$work/log" 2>&1 || fail "Debian's updates cannot be installed: $(tail -3 "$work/log" | tr '\n' ' ')"
    slim "$work/tree"
    tar --create --file "$1" --directory "$work/tree" --numeric-owner --sort=name --one-file-system .
}

has() { docker image inspect "$1" >/dev/null 2>&1; }

main() {
    local key tar refresh=""
    if [ "${1:-}" = --refresh ]; then refresh=yes; fi
    docker version >/dev/null 2>&1 || fail "no Docker daemon answers; start one first"
    if [ -z "$refresh" ] && has $NAME; then
        echo $NAME
        return
    fi
    if timeout $PULL_SECONDS docker pull --quiet $DEBIAN >/dev/null 2>&1; then
        echo $DEBIAN
        return
    fi
    key=$({ cat "${BASH_SOURCE[0]}" && uname -m; } | sha256sum | cut -c1-12)
    tar=$CACHE/$RELEASE-slim-$key.tar
    mkdir -p "$CACHE"
    exec 9>"$tar.lock"
    flock 9
    if [ -n "$refresh" ] || [ ! -e "$tar" ]; then
        make_tar "$tar.part"
        # Rename it when it is complete, so that other processes never see a partial file.
        mv "$tar.part" "$tar"
    elif has $NAME; then
        echo $NAME
        return
    fi
    docker import --change 'CMD ["bash"]' --message "debootstrap --variant=minbase $RELEASE" "$tar" $NAME >/dev/null
    say "created $NAME in $SECONDS s"
    echo $NAME
}

main "$@"
