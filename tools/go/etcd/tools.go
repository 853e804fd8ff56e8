//go:build tools

// Package tools names the programs to build, so that go.mod and go.sum pin
// everything they are made of. See ../../README.md.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
