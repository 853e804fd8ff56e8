# shellcheck shell=bash
# The set: one directory that holds the parts which fit this source tree. It is
# all that the rest of the project looks at.

set_key() {
    local part text="" sum
    load_keys
    for part in "${PARTS[@]}"; do
        text+="$part ${KEY[$part]}"$'\n'
    done
    text+=$(<"$TOOLS/setup.d/set.sh")
    sum=$(sha256sum <<<"$text")
    echo "${sum:0:16}"
}

set_dir() {
    echo "$CACHE/sets/$(set_key)"
}

set_complete() {
    [[ -d $(set_dir) ]]
}

# make_set : bin/ is real files, because it is mounted alone into lab nodes;
# they are hard links, so they cost nothing. The rest points into the parts.
make_set() {
    local dir part
    dir=$(set_dir)
    rm -rf "$dir.partial"
    mkdir -p "$dir.partial/bin"
    for part in containerd etcd kubernetes; do
        ln "$(part_dir "$part")"/bin/* "$dir.partial/bin/"
    done
    for part in node-image images containerd-seed vm; do
        ln -s "../../parts/$part-${KEY[$part]}" "$dir.partial/$part"
    done
    mv -T "$dir.partial" "$dir"
}
