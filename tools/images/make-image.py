#!/usr/bin/env python3
"""Pack one layer as a container image archive (an OCI image layout in a tar)."""

import argparse
import hashlib
import io
import json
import tarfile

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"
MEDIA = "application/vnd.oci.image."


def describe(kind, digest, size, **more):
    return {"mediaType": MEDIA + kind, "digest": "sha256:" + digest, "size": size, **more}


class Archive:
    """A tar of content-addressed blobs and the files that point at them."""

    def __init__(self, path):
        self.tar = tarfile.open(path, "w")

    def add(self, name, stream, size):
        member = tarfile.TarInfo(name)
        member.size = size
        member.mode = 0o644
        self.tar.addfile(member, stream)

    def add_json(self, value, name=None):
        data = json.dumps(value, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.add(name or "blobs/sha256/" + digest, io.BytesIO(data), len(data))
        return digest, len(data)

    def add_file(self, path):
        with open(path, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            size = stream.tell()
            stream.seek(0)
            self.add("blobs/sha256/" + digest, stream, size)
        return digest, size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layer", required=True, help="a plain tar of the root")
    parser.add_argument("--entrypoint", required=True, type=json.loads, help="a JSON list")
    parser.add_argument("--command", required=True, type=json.loads, help="a JSON list")
    parser.add_argument("out")
    parser.add_argument("names", nargs="+", help="REPOSITORY:TAG")
    args = parser.parse_args()

    archive = Archive(args.out)
    archive.add_json({"imageLayoutVersion": "1.0.0"}, "oci-layout")
    layer, layer_size = archive.add_file(args.layer)
    config, config_size = archive.add_json({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": args.entrypoint, "Cmd": args.command, "Env": [PATH]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + layer]},
    })
    manifest, manifest_size = archive.add_json({
        "schemaVersion": 2,
        "mediaType": MEDIA + "manifest.v1+json",
        "config": describe("config.v1+json", config, config_size),
        "layers": [describe("layer.v1.tar", layer, layer_size)],
    })
    archive.add_json({
        "schemaVersion": 2,
        "mediaType": MEDIA + "index.v1+json",
        "manifests": [
            describe("manifest.v1+json", manifest, manifest_size, annotations={
                "io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1],
            })
            for name in args.names
        ],
    }, "index.json")
    archive.tar.close()


if __name__ == "__main__":
    main()
