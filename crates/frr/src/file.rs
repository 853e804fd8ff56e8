//! Files that are replaced as a whole: whoever reads them at any moment reads the old or the new text.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

/// The text of a file; nothing if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file. It keeps the owner and mode it had, except that it is nobody else's to read: passwords are in it. A new
/// one has this mode and the owner of its directory.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let (owner, mode) = match fs::metadata(path) {
        Ok(old) => ((old.uid(), old.gid()), old.permissions().mode() & 0o770),
        Err(_) => fs::metadata(directory).map(|directory| ((directory.uid(), directory.gid()), mode))?,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".underlay");
    let draft = directory.join(name);
    remove(&draft)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(mode))?;
    chown(&draft, Some(owner.0), Some(owner.1))?;
    fs::rename(&draft, path)
}

/// Removes a file, if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use underlay_testkit::Scratch;

    #[test]
    fn a_file_keeps_its_mode_and_is_whole() {
        let scratch = Scratch::new("file");
        let path = scratch.join("frr.conf");
        replace(&path, "one\n", 0o640).expect("writing");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o640);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changing its mode");
        replace(&path, "two\n", 0o640).expect("writing");
        assert_eq!(read(&path).expect("reading").as_deref(), Some("two\n"));
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changing its mode");
        replace(&path, "two\n", 0o640).expect("writing");
        assert_eq!(mode(&path), 0o640, "there are passwords in it");
        assert_eq!(fs::read_dir(scratch.path()).expect("a directory").count(), 1, "no draft is left");
        remove(&path).expect("removing");
        assert_eq!(read(&path).expect("reading"), None);
    }
}
