//! The real programs and images a lab runs, as `make setup` left them in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The set this source tree was built for.
const SET: &str = env!("UNDERLAY_SET");

/// A complete set of artifacts.
#[derive(Debug, Clone)]
pub struct Artifacts {
    root: PathBuf,
}

impl Artifacts {
    /// Finds the set, or says how to make it. `UNDERLAY_CACHE` moves the cache.
    pub fn find() -> Result<Self, LabError> {
        let cache =
            std::env::var_os("UNDERLAY_CACHE").map_or_else(|| "/var/cache/underlay".into(), PathBuf::from);
        let root = cache.join("sets").join(SET);
        if root.is_dir() {
            return Ok(Self { root });
        }
        Err(LabError::refused(format!(
            "the lab's programs are not there ({} is missing): run `make setup` once",
            root.display()
        )))
    }

    /// Directory of the static programs: Kubernetes, etcd, containerd.
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// One of those programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin().join(name)
    }

    /// Root file system of every machine.
    pub fn node_image(&self) -> PathBuf {
        self.root.join("node-image")
    }

    /// A containerd root with the images unpacked.
    pub fn containerd_seed(&self) -> PathBuf {
        self.root.join("containerd-seed")
    }

    /// Kernel, modules and initramfs for `--kernel vm`.
    pub fn vm(&self) -> PathBuf {
        self.root.join("vm")
    }

    /// Names of the images that every node has; the sandbox image first.
    pub fn image_names(&self) -> Result<Vec<String>, LabError> {
        let path = self.root.join("images/names");
        let text = fs::read_to_string(&path).map_err(|error| missing(&path, &error))?;
        let names: Vec<String> = text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect();
        if names.is_empty() { Err(missing(&path, &"it is empty")) } else { Ok(names) }
    }

    /// Name of the image that carries this program.
    pub fn image_of(&self, program: &str) -> Result<String, LabError> {
        let part = format!("/{program}:");
        let mut names = self.image_names()?.into_iter();
        names.find(|name| name.contains(&part)).ok_or_else(|| {
            missing(&self.root.join("images/names"), &format!("no image of {program} is in it"))
        })
    }
}

fn missing(path: &Path, why: &dyn std::fmt::Display) -> LabError {
    LabError::refused(format!("{}: {why}: run `make setup`", path.display()))
}
