//! An image archive that nobody has seen before, brought to every node.

use std::fs;
use std::process::Command;

use underlay_testkit::{LabUnderTest, OutputExt, Scratch};

use crate::PATIENCE;
use crate::pods::get;

const NAME: &str = "test.underlay.example/tiny:1";

/// Packs an image whose only layer holds one small file.
fn archive(scratch: &Scratch) -> String {
    let run =
        |command: &mut Command| command.current_dir(scratch.path()).output().expect("running a tool").ok();
    let write = |name: &str, text: &str| fs::write(scratch.join(name), text).expect("writing a file");
    write("hello", "from the archive\n");
    run(Command::new("tar").args(["--create", "--file=layer.tar", "hello"]));
    let digest = run(Command::new("sha256sum").arg("layer.tar"));
    let digest = digest.split_whitespace().next().expect("a digest");
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    write(
        "config.json",
        &format!(
            r#"{{"architecture":"{architecture}","os":"linux","config":{{}},
                 "rootfs":{{"type":"layers","diff_ids":["sha256:{digest}"]}}}}"#
        ),
    );
    write(
        "manifest.json",
        &format!(r#"[{{"Config":"config.json","RepoTags":["{NAME}"],"Layers":["layer.tar"]}}]"#),
    );
    run(Command::new("tar").args([
        "--create",
        "--file=tiny.tar",
        "manifest.json",
        "config.json",
        "layer.tar",
    ]));
    scratch.join("tiny.tar").to_string_lossy().into_owned()
}

/// A pod on every worker. The image has no program: the node's own is lent to it.
fn daemon_set() -> String {
    format!(
        r"
apiVersion: apps/v1
kind: DaemonSet
metadata: {{ name: tiny }}
spec:
  selector: {{ matchLabels: {{ app: tiny }} }}
  template:
    metadata: {{ labels: {{ app: tiny }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: tiny
          image: {NAME}
          imagePullPolicy: Never
          command: [/node/agnhost, pause]
          volumeMounts: [{{ name: node, mountPath: /node }}]
      volumes: [{{ name: node, hostPath: {{ path: /usr/local/bin }} }}]
"
    )
}

pub fn loaded_image_runs(lab: &LabUnderTest) {
    let scratch = Scratch::new("image");
    lab.cli(&["load-image", &archive(&scratch)]).ok();
    let file = lab.file("tiny.yaml", &daemon_set());
    lab.kubectl(&["apply", "--filename", &file.to_string_lossy()]).ok();
    lab.kubectl(&["rollout", "status", "daemonset/tiny", &format!("--timeout={}s", PATIENCE.as_secs())]).ok();
    assert_eq!(get(lab, &["daemonset", "tiny"])["status"]["numberReady"], 2);
    for node in ["control", "worker1", "worker2"] {
        let images = lab.exec(node, &["ctr", "--namespace=k8s.io", "images", "list", "--quiet"]).ok();
        assert!(images.lines().any(|image| image == NAME), "{images}");
        lab.exec(node, &["test", "!", "-e", "/lab/image.tar"]).ok();
    }
    let error = lab.cli(&["load-image", &scratch.join("hello").to_string_lossy()]).refused();
    assert!(error.contains("importing"), "{error}");
}
