# shellcheck shell=bash
# Debian's archive: which mirror, and roots made from it.

# apt_update : fetch the package lists. Sources that have nothing to do with
# Debian may fail; what is needed is looked at afterwards.
apt_update() {
    status "fetching the package lists"
    apt-get update || true
}

# debian_sources SUITE : sources.list lines for a Debian release, from the
# mirrors that this machine's own apt uses, in whatever format they are written.
debian_sources() {
    local lines
    # shellcheck disable=SC2016
    local format='$(CREATED_BY) $(ORIGIN) $(COMPONENT) $(RELEASE) $(REPO_URI)'
    [[ $(apt-get indextargets --format "$format") == *"Packages Debian main "* ]] || apt_update >&2
    lines=$(apt-get indextargets --format "$format" | awk -v suite="$1" '
        $1 != "Packages" || $2 != "Debian" || $3 != "main" { next }
        $4 ~ /-security$/ { name = suite "-security" }
        $4 ~ /-updates$/ { name = suite "-updates" }
        $4 !~ /-/ { name = suite }
        name && !seen[name]++ { print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " $5 " " name " main" }
        { name = "" }')
    [[ $lines == *" $1 main"* ]] ||
        reason "apt knows no Debian mirror: see that its sources name one and that apt-get update can reach it"
    printf '%s\n' "$lines"
}

# debian_root SUITE DIR VARIANT PACKAGES [OPTION...] : a signed, trimmed Debian root.
debian_root() {
    local suite=$1 dir=$2 variant=$3 packages=$4 sources kind
    shift 4
    sources=$(debian_sources "$suite") || exit 1
    # A proxy that the machine's apt uses is used here as well.
    apt-config dump Acquire | grep -E '^Acquire::(https?|ftp)::' >"$STATUS.apt" || true
    local -a options=(--mode=root "--variant=$variant" --format=directory "--aptopt=$STATUS.apt"
        '--aptopt=APT::Install-Recommends "false"' "--include=$packages" --skip=cleanup/reproducible)
    for kind in doc man info locale lintian bug doc-base; do
        options+=("--dpkgopt=path-exclude=/usr/share/$kind/*")
    done
    status "fetching and unpacking Debian $suite"
    mmdebstrap "${options[@]}" "$@" "$suite" "$dir" - <<<"$sources" || {
        if grep -qE '^(E|Err|W): ?.*(Failed to fetch|Unable to connect|Could not resolve|Temporary failure|Cannot initiate)' "$CACHE/log/$PART.log"; then
            reason "the Debian mirror cannot be reached: $(awk 'NR == 1 { print $3 }' <<<"$sources")"
        fi
        reason "mmdebstrap could not make a root of Debian $suite"
    }
    # Nothing of this machine stays in it.
    rm -f "$STATUS.apt" "$dir"/etc/{hostname,apt/sources.list,apt/apt.conf.d/99mmdebstrap}
    : >"$dir/etc/resolv.conf"
    find "$dir"/var/{cache,log} "$dir/var/lib/apt/lists" -type f -delete
    find "$dir"/{dev,run,tmp} -mindepth 1 -delete
}
