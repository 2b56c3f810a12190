# Sourced by the stages of the image's recipe that install: lets them reach the package indexes that this machine reaches.
# The files beside this one are written when the image is built; without them the base's own settings hold.
settings=/settings
if [ -s $settings/ca-certificates.crt ]; then
    export SSL_CERT_FILE=$settings/ca-certificates.crt PIP_CERT=$settings/ca-certificates.crt
fi
if [ -s $settings/pip.conf ]; then export PIP_CONFIG_FILE=$settings/pip.conf; fi
# Another release's packages are of no use.
if [ -s $settings/apt.conf ] && [ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = "$(cat $settings/codename)" ]; then
    export APT_CONFIG=$settings/apt.conf
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
