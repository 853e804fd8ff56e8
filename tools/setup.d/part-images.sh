# shellcheck shell=bash disable=SC2034
# Container images, made here because no image registry is used: one small
# Debian root with agnhost in it, under the names that Kubernetes' tests, the
# kubelet and the container runtime ask for, and CoreDNS with nothing beside it.

images_inputs=(setup.d/part-images.sh setup.d/debian.sh images/make-image.py)
images_needs=(kubernetes coredns)

IMAGE_PACKAGES=(bind9-dnsutils curl iperf3 iproute2 iputils-ping netcat-openbsd)

# The first pause is that of Kubernetes, the second that of containerd.
PAUSE_NAMES=(registry.k8s.io/pause:3.10.2 registry.k8s.io/pause:3.10.1)
AGNHOST_NAMES=(
    registry.k8s.io/e2e-test-images/agnhost:2.63.0
    registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0
    underlay.lab/agnhost:latest
)

images_build() {
    local root=$1/root kubernetes list coredns
    kubernetes=$(part_dir kubernetes)
    list=$(IFS=, && echo "${IMAGE_PACKAGES[*]}")
    debian_root trixie "$root" essential "$list"
    images_trim "$root"
    # What the agnhost image of Kubernetes has and its tests look for.
    cp "$kubernetes/bin/agnhost" "$kubernetes"/porter/localhost.* "$root/"
    ln -s agnhost "$root/agnhost-2"
    mkdir "$root/uploads"
    echo 'user-defined-in-image:x:1000:1000::/:/bin/sh' >>"$root/etc/passwd"
    printf '%s\n' user-defined-in-image:x:1000: group-defined-in-image:x:50000:user-defined-in-image >>"$root/etc/group"

    status "packing the images"
    tar --sort=name --mtime=@0 --numeric-owner -C "$root" -cf "$1/layer.tar" .
    # Two have the same single layer, so a node unpacks it once.
    images_pack "$1" pause '["/agnhost", "pause"]' '[]' "${PAUSE_NAMES[@]}"
    images_pack "$1" agnhost '["/agnhost"]' '["pause"]' "${AGNHOST_NAMES[@]}"
    coredns=registry.k8s.io/coredns/coredns:$(go_version coredns github.com/coredns/coredns)
    tar --mtime=@0 --numeric-owner -C "$(part_dir coredns)/bin" -cf "$1/layer.tar" coredns
    images_pack "$1" coredns '["/coredns"]' '[]' "$coredns"
    printf '%s\n' "${PAUSE_NAMES[@]}" "${AGNHOST_NAMES[@]}" "$coredns" >"$1/names"
    rm -rf "$root" "$1/layer.tar"
}

# images_trim ROOT : leave out what only installing packages needs.
images_trim() {
    local dir
    for dir in usr/share/{doc,man,info,locale,perl5,zoneinfo,bash-completion,debconf,common-licenses,menu,pam,pam-configs,keyrings,gcc,gdb} \
        usr/lib/x86_64-linux-gnu/{gconv,perl-base,perl} usr/lib/{apt,dpkg,systemd,init,udev,locale,tmpfiles.d,sysusers.d} \
        usr/share/{dpkg,polkit-1,sensible-utils,systemd} usr/libexec/dpkg \
        var/{cache,backups,log} var/lib/{dpkg,apt,pam,systemd} etc/{apt,dpkg,systemd,cron.daily,init.d,rc?.d,logrotate.d,kernel,iproute2}; do
        # shellcheck disable=SC2086
        rm -rf "${1:?}"/$dir
    done
    rm -f "$1"/usr/bin/{perl*,dpkg*,update-alternatives,deb-systemd-*} "$1"/usr/sbin/dpkg-*
    mkdir -p "$1"/var/{cache,log}
    chmod 1777 "$1/tmp"
}

images_pack() {
    local dir=$1 name=$2 entrypoint=$3 command=$4
    shift 4
    python3 "$TOOLS/images/make-image.py" --layer "$dir/layer.tar" \
        --entrypoint "$entrypoint" --command "$command" "$dir/$name.tar" "$@"
}
