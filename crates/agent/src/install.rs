//! Gives the container runtime the plugin and tells it to use it. Until then the kubelet says that the node has no network.

use std::io;
use std::path::Path;

use serde_json::json;
use tokio::fs;
use underlay_cni::{PLUGIN, VERSION};

/// The file that the runtime takes first.
const CONFIG: &str = "10-ovn-kubernetes.conf";

/// Copies the plugin, unless it is there.
pub async fn plugin(source: &Path, directory: &Path) -> io::Result<()> {
    let content = fs::read(source).await.map_err(|error| named(source, &error))?;
    put(&directory.join(PLUGIN), &content, 0o755).await
}

/// Writes the network configuration, unless it is there. From now on pods can start.
pub async fn config(directory: &Path) -> io::Result<()> {
    let config = json!({ "cniVersion": VERSION, "name": "ovn-kubernetes", "type": PLUGIN });
    put(&directory.join(CONFIG), format!("{config:#}\n").as_bytes(), 0o600).await
}

/// Writes a file in one step, so that nobody sees half of it, and only if it says something else.
async fn put(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::read(path).await.is_ok_and(|old| old == content) {
        return Ok(());
    }
    let write = async {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).await?;
        }
        let new = path.with_extension("new");
        fs::write(&new, content).await?;
        fs::set_permissions(&new, std::fs::Permissions::from_mode(mode)).await?;
        fs::rename(&new, path).await
    };
    write.await.map_err(|error| named(path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
