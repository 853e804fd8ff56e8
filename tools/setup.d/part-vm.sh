# shellcheck shell=bash disable=SC2034
# A Debian kernel, its modules and an initramfs, to boot under QEMU. The
# package is unpacked, never installed: the machine's own kernel stays as it is.

vm_inputs=(setup.d/part-vm.sh vm/init vm/modules)
vm_needs=()

# Modules that the initramfs needs until it has a root.
VM_BOOT_MODULES=(virtio_pci virtio_blk virtio_net virtio_console virtio_rng 9pnet_virtio 9p overlay squashfs)

vm_build() {
    local package version
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -n 1)
    if [[ ! $package ]] || ! vm_fetch "$package" "$1/deb"; then
        apt_update
        package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
        vm_fetch "$package" "$1/deb" ||
            reason "the kernel package ${package:-linux-image-amd64} cannot be had from the Debian mirror of this machine's apt"
    fi
    status "unpacking $package"
    dpkg-deb -x "$1"/deb/*.deb "$1/root"
    version=${package#linux-image-}
    cp "$1/root/boot/vmlinuz-$version" "$1/vmlinuz"
    vm_unpack "$1/vmlinuz" "$1/vmlinux"
    status "choosing modules"
    vm_modules "$1" "$version"
    status "packing the initramfs"
    vm_initramfs "$1" "$version"
    rm -rf "$1/root" "$1/deb"
}

vm_fetch() {
    status "fetching $1"
    mkdir -p "$2"
    (cd "$2" && apt-get -o APT::Sandbox::User=root download "$1")
}

# vm_unpack VMLINUZ VMLINUX : the kernel as QEMU can start it at once. To unpack
# it takes an emulated processor three seconds, as long as all the rest of the
# boot. A kernel that is packed in another way stays as it is.
vm_unpack() {
    local sectors offset length
    # From the header that a boot loader reads: sectors of set-up code, then
    # place and length of the packed kernel after it; its last word is a size.
    sectors=$(od -An -tu1 -j 497 -N 1 "$1")
    read -r offset length < <(od -An -tu4 -j 584 -N 8 "$1")
    dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip=$(((sectors + 1) * 512 + offset)) count=$((length - 4)) status=none |
        xz -dc >"$2" || cp "$1" "$2"
}

# vm_modules DIR VERSION : move the modules named in vm/modules, and those they
# need, from root/ to modules/.
vm_modules() {
    local from to path module
    # Debian 13 has them below /usr.
    [[ -d $1/root/lib ]] || ln -s usr/lib "$1/root/lib"
    from=$1/root/lib/modules/$2
    to=$1/modules/lib/modules/$2
    depmod -b "$1/root" "$2"
    mkdir -p "$to"
    sed 's/#.*//' "$TOOLS/vm/modules" | while read -r path; do
        [[ $path ]] || continue
        # Later kernels compress modules: .ko.xz. What a kernel has built in is not there.
        (cd "$from" && find "kernel/$path" "kernel/$path".?z -name '*.ko*' 2>/dev/null) || true
    done | sort -u >"$1/wanted"
    # modules.dep has one line a module, with all that it needs, far and near.
    awk 'NR == FNR { want[$1] = 1; next }
        { sub(":", "", $1) } $1 in want { for (i = 1; i <= NF; i++) print $i }' \
        "$1/wanted" "$from/modules.dep" | sort -u | while read -r module; do
        mkdir -p "$to/${module%/*}"
        cp "$from/$module" "$to/$module"
    done
    rm "$1/wanted"
    cp "$from"/modules.{builtin,builtin.modinfo,order} "$to/"
    depmod -b "$1/modules" "$2"
}

vm_initramfs() {
    local tree=$1/tree from=$1/modules file
    mkdir -p "$tree/bin" "$tree/lib/modules/$2"
    cp /bin/busybox "$tree/bin/busybox"
    cp "$TOOLS/vm/init" "$tree/init"
    modprobe -d "$from" -S "$2" --show-depends -a "${VM_BOOT_MODULES[@]}" | sed -n 's/^insmod //p' | while read -r file _; do
        file=${file#"$from"/}
        mkdir -p "$tree/${file%/*}"
        cp "$from/$file" "$tree/$file"
    done
    cp "$from/lib/modules/$2"/modules.{builtin,builtin.modinfo,order} "$tree/lib/modules/$2/"
    depmod -b "$tree" "$2"
    (cd "$tree" && find . -print0 | sort -z | cpio --null --quiet --reproducible -o -H newc) | gzip -9 >"$1/initramfs.gz"
    rm -rf "$tree"
}
