# shellcheck shell=bash disable=SC2034
# The store behind the API server.

etcd_inputs=(setup.d/part-etcd.sh setup.d/go.sh go/etcd/{go.mod,go.sum,tools.go})
etcd_needs=()

etcd_build() {
    go_build etcd build -o "$1/bin/" -ldflags "-s -w" -- go.etcd.io/etcd/{server,etcdctl}/v3
    mv "$1/bin/server" "$1/bin/etcd"
}
