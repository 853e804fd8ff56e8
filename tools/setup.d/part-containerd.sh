# shellcheck shell=bash disable=SC2034
# The container runtime: containerd, its shim and its command line.

containerd_inputs=(setup.d/part-containerd.sh setup.d/go.sh go/containerd/{go.mod,go.sum,tools.go})
containerd_needs=()

containerd_build() {
    local module=github.com/containerd/containerd/v2 version
    version=$(go_version containerd "$module")
    go_build containerd build -o "$1/bin/" -tags no_btrfs,no_zfs,no_devmapper,no_aufs \
        -ldflags "-s -w -X $module/version.Version=$version" \
        -- "$module"/cmd/{containerd,containerd-shim-runc-v2,ctr}
}
