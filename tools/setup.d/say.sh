# shellcheck shell=bash
# What the person at the terminal sees. Everything goes to stderr.

# fail SENTENCE... : say what is wrong and end.
fail() {
    printf 'tools/setup: %s\n' "$*" >&2
    exit 1
}

# duration SECONDS : 72 becomes 1m12s.
duration() {
    if (($1 < 60)); then
        printf '%ds' "$1"
    else
        printf '%dm%02ds' $(($1 / 60)) $(($1 % 60))
    fi
}

# status TEXT... : what the part being built is at now. Called by the parts;
# the process that watches the part shows it.
status() {
    # shellcheck disable=SC2153
    printf '%s\n' "$*" >"$STATUS"
    printf '== %(%H:%M:%S)T %s\n' -1 "$*"
}

# reason SENTENCE... : why the part being built cannot be built; ends the part.
reason() {
    printf '%s\n' "$*" >"$STATUS.reason"
    exit 1
}

# watch_part PID LABEL STATUS : show how far a part is until its process ends.
# A terminal gets one line that changes; anything else a line every 20 seconds.
watch_part() {
    local pid=$1 label=$2 status=$3 start=$SECONDS told=$SECONDS text='' width=80
    if [[ -t 2 ]]; then
        read -r _ width < <(stty size <&2) || true
        ((width > 40)) || width=80
    else
        printf '%s\n' "$label" >&2
    fi
    while kill -0 "$pid" 2>/dev/null; do
        [[ -r $status ]] && { read -r text <"$status" || true; }
        if [[ -t 2 ]]; then
            # Cut to fit: a line that wraps cannot be written over.
            text=${text:-starting}
            printf '\r\033[K%s  %s… %s' "$label" "${text:0:width - ${#label} - 12}" "$(duration $((SECONDS - start)))" >&2
        elif ((SECONDS - told >= 20)); then
            told=$SECONDS
            printf '%s  %s… %s\n' "$label" "$text" "$(duration $((SECONDS - start)))" >&2
        fi
        sleep 0.5
    done
    [[ -t 2 ]] && printf '\r\033[K' >&2
    return 0
}
