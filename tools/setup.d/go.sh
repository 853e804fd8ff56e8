# shellcheck shell=bash
# Building Go programs from the modules pinned in tools/go.

# The place where distributions and go.dev put Go, for a PATH that sudo cut short.
find_go_quietly() {
    local dir
    command -v go >/dev/null && return
    for dir in /usr/local/go/bin /usr/lib/go/bin; do
        [[ -x $dir/go ]] && PATH=$PATH:$dir
    done
    return 0
}

# find_go : end with a sentence unless there is a Go that can build all modules.
find_go() {
    local need have
    need=$(sed -n 's/^go //p' "$TOOLS"/go/*/go.mod | sort -V | tail -n 1)
    find_go_quietly
    command -v go >/dev/null ||
        fail "Go >= $need is needed and go is not in PATH: install it from your distribution or https://go.dev/dl"
    have=$(GOTOOLCHAIN=local go env GOVERSION)
    [[ $(printf '%s\n' "go$need" "$have" | sort -V | head -n 1) == "go$need" ]] ||
        fail "Go >= $need is needed and $(command -v go) is ${have#go}: install a newer one from your distribution or https://go.dev/dl"
}

# go_version MODULE PATH : the release of PATH that the module requires.
go_version() {
    awk -v path="$2" '$1 == "require" { $1 = ""; $0 = $0 } $1 == path { print $2; exit }' "$TOOLS/go/$1/go.mod"
}

# go_build MODULE COMMAND... : run a go command that takes the sources from the
# module and ends with the packages after "--". Sources are fetched first, so
# that a registry which cannot be reached is told apart from a failed build.
go_build() {
    local module=$1 total count=0 line
    shift
    local -a command=()
    while [[ $1 != -- ]]; do
        command+=("$1")
        shift
    done
    shift
    export GOFLAGS="-mod=readonly -modcacherw -trimpath -buildvcs=false"
    export GOTOOLCHAIN=local CGO_ENABLED=0 GOCACHE=$CACHE/go/build GOMODCACHE=$CACHE/go/mod
    cd "$TOOLS/go/$module" || exit
    status "fetching the sources of $module"
    go list -deps -test="$([[ ${command[0]} == test ]] && echo true || echo false)" -- "$@" >"$STATUS.deps" ||
        reason "the sources of $module cannot be had from the Go module registry (GOPROXY=$(go env GOPROXY))"
    total=$(wc -l <"$STATUS.deps")
    rm -f "$STATUS.deps"
    status "compiling $module"
    # -v names each package when it is compiled.
    {
        go "${command[@]}" -v "$@" 2>&1 || reason "$module does not compile"
    } | while read -r line; do
        count=$((count + 1))
        printf '%s\n' "$line"
        printf 'compiling %s, %d of at most %d packages\n' "$module" "$count" "$total" >"$STATUS"
    done
}
