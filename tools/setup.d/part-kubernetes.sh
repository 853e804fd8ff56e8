# shellcheck shell=bash disable=SC2034
# Kubernetes' own programs, and agnhost, the program inside the lab's images.

kubernetes_inputs=(setup.d/part-kubernetes.sh setup.d/go.sh go/kubernetes/{go.mod,go.sum,tools.go})
kubernetes_needs=()

# kubernetes_ldflags : what makes the programs report their release.
kubernetes_ldflags() {
    local version major minor variable package flags="-s -w"
    version=$(go_version kubernetes k8s.io/kubernetes)
    IFS=. read -r major minor _ <<<"${version#v}"
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        for variable in "gitVersion=$version" "gitMajor=$major" "gitMinor=$minor" gitTreeState=clean; do
            flags+=" -X $package.$variable"
        done
    done
    echo "$flags"
}

kubernetes_build() {
    go_build kubernetes build -o "$1/bin/" -ldflags "$(kubernetes_ldflags)" \
        -- k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kubectl} \
        k8s.io/kubernetes/test/images/agnhost
    # Files that agnhost's https server reads; the images carry them.
    mkdir "$1/porter"
    cp "$(cd "$TOOLS/go/kubernetes" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)"/test/images/agnhost/porter/localhost.{crt,key} "$1/porter/"
}
