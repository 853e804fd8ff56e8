# shellcheck shell=bash disable=SC2034
# Kubernetes' end-to-end tests, and ginkgo to run them in parallel. Made only
# on demand: tools/setup e2e.

e2e_inputs=(setup.d/part-e2e.sh setup.d/part-images.sh)
e2e_needs=(kubernetes)

e2e_build() {
    local name
    go_build kubernetes test -c -o "$1/e2e.test" -ldflags "$(kubernetes_ldflags)" -- k8s.io/kubernetes/test/e2e
    status "checking the names of the images"
    "$1/e2e.test" --list-images >"$1/images"
    for name in "${PAUSE_NAMES[0]}" "${AGNHOST_NAMES[@]:0:2}"; do
        grep -qxF "$name" "$1/images" ||
            reason "the tests of this Kubernetes release do not use $name: put the name they list in tools/setup.d/part-images.sh"
    done
    go_build kubernetes build -o "$1/ginkgo" -ldflags "-s -w" -- github.com/onsi/ginkgo/v2/ginkgo
}
