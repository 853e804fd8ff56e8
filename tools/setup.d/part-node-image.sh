# shellcheck shell=bash disable=SC2034
# The root of every machine of the lab: Debian trixie with OVN, Open vSwitch,
# FRR and what a kubelet and its runtime call.

node_image_inputs=(setup.d/part-node-image.sh setup.d/debian.sh)
node_image_needs=()

NODE_PACKAGES=(
    ovn-central ovn-host openvswitch-switch frr frr-pythontools
    nftables iproute2 ethtool conntrack kmod procps mount
    runc containernetworking-plugins
    curl ca-certificates socat netcat-openbsd iputils-ping ndisc6 tcpdump iperf3 jq less
)

node_image_build() {
    local list
    list=$(IFS=, && echo "${NODE_PACKAGES[*]}")
    debian_root trixie "$1" minbase "$list"
    status "trimming"
    rm -rf "${1:?}"/usr/share/{zsh,fish,bash-completion,pixmaps,icons} "${1:?}"/boot/*
    find "$1/usr" -name __pycache__ -type d -prune -exec rm -rf {} +
    # Where the lab mounts or writes.
    mkdir -p "$1"/var/lib/{containerd,kubelet,etcd} "$1"/etc/{cni/net.d,kubernetes} "$1"/opt/cni/bin "$1"/usr/local/bin
    [[ $(readlink "$1/var/run") == /run ]] || ln -sfnT /run "$1/var/run"
    status "checking"
    chroot "$1" ovn-nbctl --version
    chroot "$1" ovs-vsctl --version
    chroot "$1" /usr/lib/frr/bgpd --version
    chroot "$1" runc --version
}
