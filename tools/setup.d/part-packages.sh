# shellcheck shell=bash disable=SC2034
# Debian packages on the machine itself. The programs of the lab's nodes are
# not here but in the node image.

packages_inputs=(setup.d/part-packages.sh)
packages_needs=()

PACKAGES=(
    busybox-static         # the user space of a virtual machine's initramfs
    ca-certificates        # fetching over https
    cpio                   # packing the initramfs
    curl                   # talking to the lab's API servers
    debian-archive-keyring # what makes a Debian root trustworthy
    ethtool                # offloads of the lab's links
    iproute2               # namespaces and links
    iputils-ping           # is it up?
    kmod                   # indexing the virtual machine's modules
    mmdebstrap             # making Debian roots
    nftables               # filters of the lab's links
    procps                 # ps, sysctl
    qemu-system-x86        # virtual machines
    util-linux             # nsenter, unshare, flock
    xz-utils               # unpacking the virtual machine's kernel
)

# packages_missing : print those that are not installed; false when all are.
packages_missing() {
    local package state
    local -A installed=()
    while read -r state package; do
        [[ $state == ii ]] && installed[${package%:*}]=1
    done < <(dpkg-query -W -f='${db:Status-Abbrev} ${binary:Package}\n' "${PACKAGES[@]}" 2>/dev/null || true)
    local -a gone=()
    for package in "${PACKAGES[@]}"; do
        [[ ${installed[$package]-} ]] || gone+=("$package")
    done
    ((${#gone[@]})) && echo "${gone[*]}"
}

packages_build() {
    local missing
    missing=$(packages_missing)
    apt_update
    status "installing $missing"
    dpkg --configure -a # in case an earlier installation was cut off
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing || {
        if grep -qE 'Failed to fetch|Unable to locate|no installation candidate' "$CACHE/log/$PART.log"; then
            reason "the Debian mirror of this machine's apt cannot be reached or lacks a package"
        fi
        reason "apt-get could not install $missing"
    }
}
