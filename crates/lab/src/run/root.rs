//! The file system of a machine: an overlay on the node image, with its own `/proc`, `/sys`, `/run` and data.

use std::fs;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use crate::artifacts::Artifacts;
use crate::error::{Doing, LabError};
use crate::plan::underlay::PROGRAMS;

const NONE: Option<&str> = None;

/// Makes every mount of this process's namespace private: nothing we mount is seen outside.
pub fn make_private() -> Result<(), LabError> {
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .doing(|| "making mounts private".to_owned())
}

/// Mounts a file system of this type.
pub fn mount_fs(kind: &str, target: &Path, options: &str) -> Result<(), LabError> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), Some(options))
        .doing(|| format!("mounting {kind} on {}", target.display()))
}

fn bind(source: &Path, target: &Path) -> Result<(), LabError> {
    fs::create_dir_all(target).doing(|| format!("making {}", target.display()))?;
    mount(Some(source), target, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)
        .doing(|| format!("binding {} to {}", source.display(), target.display()))
}

/// Builds a machine's root below its directory and makes it this process's root. The process must be the first of its
/// PID namespace, in the machine's network namespace and in a mount namespace of its own.
pub fn enter_root(machine: &Path, artifacts: &Artifacts, node: bool) -> Result<(), LabError> {
    make_private()?;
    let root = machine.join("root");
    overlay(machine, &artifacts.node_image(), &root)?;
    mount_fs("proc", &root.join("proc"), "")?;
    // A sysfs of its own shows the network devices of the namespace it was mounted in.
    mount_fs("sysfs", &root.join("sys"), "")?;
    if Path::new("/sys/fs/cgroup").is_dir() {
        bind(Path::new("/sys/fs/cgroup"), &root.join("sys/fs/cgroup"))?;
    }
    bind(Path::new("/dev"), &root.join("dev"))?;
    mount_fs("tmpfs", &root.join("run"), "mode=0755")?;
    mount_fs("tmpfs", &root.join("tmp"), "mode=1777")?;
    bind(&machine.join("lab"), &root.join("lab"))?;
    bind(&artifacts.bin(), &root.join("usr/local/bin"))?;
    // Our own programs are found beside this one; a new build is used at the next start of a daemon.
    let program = std::env::current_exe().doing(|| "finding this program".to_owned())?;
    if let Some(directory) = program.parent() {
        bind(directory, &root.join(PROGRAMS.trim_start_matches('/')))?;
    }
    if Path::new("/lib/modules").is_dir() {
        bind(Path::new("/lib/modules"), &root.join("usr/lib/modules"))?;
    }
    if node {
        // Data of the runtime must not lie on an overlay: containers are overlays themselves.
        for name in ["containerd", "kubelet"] {
            bind(&machine.join(name), &root.join("var/lib").join(name))?;
        }
        fs::create_dir_all(root.join("var/lib/etcd")).doing(|| "making /var/lib/etcd".to_owned())?;
        mount_fs("tmpfs", &root.join("var/lib/etcd"), "mode=0700")?;
    }
    switch_to(&root)
}

fn overlay(machine: &Path, image: &Path, root: &Path) -> Result<(), LabError> {
    let (upper, work) = (machine.join("upper"), machine.join("work"));
    for directory in [root, &upper, &work] {
        fs::create_dir_all(directory).doing(|| format!("making {}", directory.display()))?;
    }
    let options =
        format!("lowerdir={},upperdir={},workdir={}", image.display(), upper.display(), work.display());
    mount_fs("overlay", root, &options)
}

/// `pivot_root` onto a directory and drop the old root; runc needs a root that is a mount, not a mere chroot.
fn switch_to(root: &Path) -> Result<(), LabError> {
    chdir(root).doing(|| format!("entering {}", root.display()))?;
    pivot_root(".", ".").doing(|| "changing root".to_owned())?;
    umount2(".", MntFlags::MNT_DETACH).doing(|| "leaving the old root".to_owned())?;
    chdir("/").doing(|| "entering the new root".to_owned())?;
    // The kubelet hands mounts on to containers.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SHARED, NONE).doing(|| "sharing mounts".to_owned())
}
