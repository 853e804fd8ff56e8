//go:build tools

// Package tools names the programs to build, so that go.mod and go.sum pin
// everything they are made of. See ../../README.md.
package tools

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
