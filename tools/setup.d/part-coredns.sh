# shellcheck shell=bash disable=SC2034
# Cluster DNS. Its image is made with the others.

coredns_inputs=(setup.d/part-coredns.sh setup.d/go.sh go/coredns/{go.mod,go.sum,main.go})
coredns_needs=()

coredns_build() {
    go_build coredns build -o "$1/bin/" -ldflags "-s -w" -- .
}
