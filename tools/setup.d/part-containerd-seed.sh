# shellcheck shell=bash disable=SC2034
# A containerd root in which the images are already imported and unpacked. A
# node of the lab starts from a copy of it, made of hard links except for the
# *.db files, which containerd writes in place.

containerd_seed_inputs=(setup.d/part-containerd-seed.sh)
containerd_seed_needs=(containerd images)

containerd_seed_build() {
    local bin work=$1.state image pid names
    bin=$(part_dir containerd)/bin
    rm -rf "$work"
    mkdir -p "$work"
    cat >"$work/config.toml" <<END
version = 3
root = "$1"
state = "$work/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.native", "io.containerd.differ.v1.erofs"]
[grpc]
  address = "$work/sock"
END
    status "starting containerd"
    "$bin/containerd" --config "$work/config.toml" &
    pid=$!
    for ((i = 0; i < 100; i++)); do
        "$bin/ctr" --address "$work/sock" version >/dev/null 2>&1 && break
        kill -0 "$pid" || reason "containerd does not start"
        sleep 0.1
    done
    for image in pause agnhost coredns; do
        status "importing and unpacking $image"
        "$bin/ctr" --address "$work/sock" --namespace k8s.io images import --snapshotter overlayfs "$(part_dir images)/$image.tar"
    done
    # What marks an image as the CRI plugin's own, and as one never to be collected.
    mapfile -t names <"$(part_dir images)/names"
    for image in "${names[@]}"; do
        "$bin/ctr" --address "$work/sock" --namespace k8s.io images label "$image" \
            io.cri-containerd.image=managed io.cri-containerd.pinned=pinned
    done
    "$bin/ctr" --address "$work/sock" --namespace k8s.io images check --snapshotter overlayfs
    "$bin/ctr" --address "$work/sock" --namespace k8s.io snapshots --snapshotter overlayfs ls
    status "stopping containerd"
    kill "$pid"
    wait "$pid" || true
    rm -rf "$work"
}
