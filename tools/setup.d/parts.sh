# shellcheck shell=bash
# Parts: each has a key made of what it is built from, and lives in
# $CACHE/parts/NAME-KEY once it is complete. A file part-NAME.sh gives, with
# dashes as underscores:
#   NAME_inputs  the files, relative to this directory's parent, that decide what comes out
#   NAME_needs   the parts whose result goes into it
#   NAME_build   makes the part in the directory $1
# The part "packages" is the machine's own packages and has no directory.

declare -A KEY=()

# load_keys : fill KEY for every part. One hash of all files, then one a part.
load_keys() {
    ((${#KEY[@]})) && return
    local part var file need sum text
    local -a files=()
    local -A digest=()
    # shellcheck disable=SC2153
    for part in "${PARTS[@]}" e2e; do
        declare -n var="${part//-/_}_inputs"
        files+=("${var[@]}")
    done
    while read -r sum file; do
        digest[$file]=$sum
    done < <(cd "$TOOLS" && sha256sum -- "${files[@]}")
    for part in "${PARTS[@]}" e2e; do
        declare -n var="${part//-/_}_inputs"
        text=
        for file in "${var[@]}"; do
            [[ ${digest[$file]-} ]] || fail "$TOOLS/$file is missing from the source tree"
            text+="$file ${digest[$file]}"$'\n'
        done
        declare -n var="${part//-/_}_needs"
        for need in "${var[@]}"; do
            text+="$need ${KEY[$need]}"$'\n'
        done
        sum=$(sha256sum <<<"$text")
        KEY[$part]=${sum:0:16}
    done
}

part_dir() {
    load_keys
    echo "$CACHE/parts/$1-${KEY[$1]}"
}

# missing PART : true when it has still to be made.
missing() {
    if [[ $1 == packages ]]; then
        packages_missing >/dev/null
    else
        [[ ! -d $CACHE/parts/$1-${KEY[$1]} ]]
    fi
}

# setup_all PART... : make those that are missing, then the set.
setup_all() {
    local part
    local -a todo=()
    command -v dpkg-query >/dev/null || fail "this needs a Debian machine: dpkg-query is not in PATH"
    load_keys
    for part; do
        missing "$part" && todo+=("$part")
    done
    ((${#todo[@]} == 0)) && set_complete && return

    preflight "${todo[@]}"
    mkdir -p "$CACHE"/{parts,sets,log}
    take_lock
    local number=0
    for part; do
        number=$((number + 1))
        # Asked again: the set-up that held the lock may have made it.
        if missing "$part"; then
            make_part "$part" "[$number/$#] $part"
        fi
    done
    set_complete || make_set
}

# preflight PART... : everything that can be known to be missing before starting.
preflight() {
    local part free need=2
    ((EUID == 0)) || fail "the lab is not complete on this machine; run as root to make it: sudo make setup"
    [[ $(dpkg --print-architecture) == amd64 ]] || fail "the lab runs on amd64 only; this machine is $(dpkg --print-architecture)"
    find_rust
    for part; do
        case $part in
        containerd | etcd | coredns | kubernetes | e2e)
            find_go
            need=8
            ;;
        esac
    done
    mkdir -p "$CACHE" || fail "cannot make $CACHE; set UNDERLAY_CACHE to a directory on a local disk"
    free=$(($(stat -f -c '%a * %S / 1073741824' "$CACHE")))
    ((free >= need)) ||
        fail "only $free GiB are free in $CACHE and $need are needed; free some or set UNDERLAY_CACHE to another disk"
}

# find_rust : sudo drops ~/.cargo/bin from PATH, so look there as well.
find_rust() {
    local home
    home=$(getent passwd "${SUDO_USER:-root}" | cut -d: -f6) || home=$HOME
    command -v cargo >/dev/null || [[ -x $HOME/.cargo/bin/cargo || -x $home/.cargo/bin/cargo ]] ||
        fail "Rust is needed and cargo is not in PATH: install it from your distribution or https://rustup.rs"
}

take_lock() {
    exec 9>"$CACHE/lock"
    flock -n 9 && return
    echo "tools/setup: another set-up is at work in $CACHE; waiting for it to end" >&2
    flock 9
}

# make_part PART LABEL : build it beside its place and move it there when whole.
make_part() {
    local part=$1 label=$2 dir log start=$SECONDS rc=0
    dir=$(part_dir "$part")
    log=$CACHE/log/$part.log
    STATUS=$CACHE/log/$part.status
    rm -rf "$dir.partial" "$STATUS" "$STATUS.reason"
    mkdir -p "$dir.partial"
    # Its own mount and process namespaces: whatever ends the set-up, nothing
    # of the part stays mounted or running.
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
        "$TOOLS/setup" --build-part "$part" "$dir.partial" "$STATUS" >"$log" 2>&1 </dev/null &
    local pid=$!
    # shellcheck disable=SC2064
    trap "interrupted $pid" INT TERM HUP
    watch_part "$pid" "$label" "$STATUS"
    wait "$pid" || rc=$?
    trap - INT TERM HUP
    if ((rc)); then
        part_failed "$part" "$label" "$log"
    fi
    if [[ $part == packages ]]; then
        rmdir "$dir.partial"
    else
        mv -T "$dir.partial" "$dir"
    fi
    rm -f "$STATUS"
    printf '%s  done in %s\n' "$label" "$(duration $((SECONDS - start)))" >&2
}

interrupted() {
    trap - INT TERM HUP
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    printf '\ntools/setup: stopped; run it again to go on from here\n' >&2
    exit 130
}

part_failed() {
    local part=$1 label=$2 log=$3 why=
    [[ -r $STATUS.reason ]] && why=$(<"$STATUS.reason")
    printf '%s  failed\n' "$label" >&2
    printf 'tools/setup: %s\n' "${why:-the part $part could not be made}" >&2
    printf 'The whole story is in %s; it ends with:\n' "$log" >&2
    tail -n 8 "$log" | sed 's/^/    /' >&2
    exit 1
}

# build_part PART DIR STATUS : the body of make_part's child process.
build_part() {
    # shellcheck disable=SC2034
    PART=$1
    STATUS=$3
    load_keys
    find_go_quietly
    umask 022
    "${1//-/_}_build" "$2"
}

# prune : forget what other versions of the source tree have made.
prune() {
    local part dir keep
    ((EUID == 0)) || fail "run as root: sudo tools/setup prune"
    load_keys
    mkdir -p "$CACHE"
    take_lock
    for dir in "$CACHE"/parts/*; do
        keep=
        for part in "${PARTS[@]}" e2e; do
            [[ $dir == "$(part_dir "$part")" ]] && keep=1
        done
        [[ $keep || ! -e $dir ]] || rm -rf "$dir"
    done
    for dir in "$CACHE"/sets/*; do
        [[ $dir == "$(set_dir)" || ! -e $dir ]] || rm -rf "$dir"
    done
}
