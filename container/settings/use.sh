# Sourced by the stages of the Dockerfile that install packages, so that they use this machine's package indexes. The image
# build writes the other files in this directory; without them the settings of the base apply.
settings=/settings
if [ -s $settings/ca-certificates.crt ]; then
    export SSL_CERT_FILE=$settings/ca-certificates.crt PIP_CERT=$settings/ca-certificates.crt
fi
if [ -s $settings/pip.conf ]; then export PIP_CONFIG_FILE=$settings/pip.conf; fi
# Ignore apt's settings if they are for another Debian release.
if [ -s $settings/apt.conf ] && [ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = "$(cat $settings/codename)" ]; then
    export APT_CONFIG=$settings/apt.conf
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
