//! The command line of QEMU. Pure, so that it can be read and tested.

use std::path::{Path, PathBuf};

use super::network::TAP;
use crate::error::LabError;

/// The emulator.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// Memory of the machine. Three nodes take 0.4 GiB, files that they write included, and the host only gives what is
/// touched: this is room for two dozen.
const MEMORY: &str = "3G";

/// The emulated processor: all that QEMU can do, except the string instructions that are said to be fast. Programs
/// would copy by them, and QEMU does it byte by byte: five times slower.
const PROCESSOR: &str = "max,-erms,-fsrm";

/// The clock of the host's processor is cheaper to read than an emulated timer. Faults of real processors are not
/// emulated, so there is nothing to mitigate. The same program at the same address is translated only once: without
/// that, a lab takes half as long again and twice the memory.
const KERNEL: &str =
    "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable clocksource=tsc nowatchdog norandmaps";

/// More processors than these find nothing to do.
const MOST_PROCESSORS: usize = 4;

/// What a machine is started from.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Kernel, initramfs and modules.
    pub artifacts: PathBuf,
    /// The lab's directory; the machine sees it where it is.
    pub directory: PathBuf,
    /// This program, to be the machine's first process.
    pub program: PathBuf,
    /// Where its console is written to.
    pub console: PathBuf,
    /// Processors of the host.
    pub processors: usize,
}

impl Machine {
    /// The arguments of QEMU.
    pub fn arguments(&self) -> Result<Vec<String>, LabError> {
        let program = word(&self.program)?;
        let directory = word(&self.directory)?;
        let processors = self.processors.clamp(1, MOST_PROCESSORS).to_string();
        let kernel = format!("{KERNEL} underlay.init={program} underlay.args=\"lab guest {directory}\"");
        let arguments = [
            ["-accel", "tcg,thread=multi"].map(str::to_owned).to_vec(),
            ["-M", "q35", "-cpu", PROCESSOR, "-smp", &processors, "-m", MEMORY].map(str::to_owned).to_vec(),
            ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"].map(str::to_owned).to_vec(),
            vec!["-kernel".to_owned(), self.artifacts.join("vmlinux").display().to_string()],
            vec!["-initrd".to_owned(), self.artifacts.join("initramfs.gz").display().to_string()],
            vec!["-append".to_owned(), kernel],
            vec!["-chardev".to_owned(), format!("file,id=console,path={}", option(&self.console))],
            vec!["-serial".to_owned(), "chardev:console".to_owned()],
            share("host", Path::new("/")),
            share("modules", &self.artifacts.join("modules/lib/modules")),
            vec!["-netdev".to_owned(), format!("tap,id=net,ifname={TAP},script=no,downscript=no")],
            ["-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci"]
                .map(str::to_owned)
                .to_vec(),
        ];
        Ok(arguments.concat())
    }
}

/// A directory of the host that the machine may read.
fn share(tag: &str, path: &Path) -> Vec<String> {
    let path = option(path);
    vec![
        "-virtfs".to_owned(),
        format!("local,path={path},mount_tag={tag},security_model=none,readonly=on,multidevs=remap"),
    ]
}

/// A path inside an option, where commas separate.
fn option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// A path on the kernel's command line, where blanks and quotes separate.
fn word(path: &Path) -> Result<String, LabError> {
    let text = path.display().to_string();
    if text.contains(|letter: char| letter.is_whitespace() || letter == '"') {
        return Err(LabError::refused(format!(
            "{text:?} has a blank or a quote, which a kernel's command line cannot hold: choose another UNDERLAY_STATE"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(directory: &str) -> Machine {
        let directory = PathBuf::from(directory);
        Machine {
            artifacts: "/cache/vm".into(),
            program: directory.join("program"),
            console: directory.join("console.log"),
            processors: 2,
            directory,
        }
    }

    #[test]
    fn what_is_lent_is_read_only() {
        let arguments = machine("/labs/one").arguments().unwrap();
        let shares: Vec<_> = arguments.iter().filter(|argument| argument.contains("mount_tag")).collect();
        assert_eq!(shares.len(), 2);
        assert!(shares.iter().all(|share| share.contains("readonly=on")));
    }

    #[test]
    fn commas_are_doubled_and_blanks_refused() {
        let arguments = machine("/labs/a,b").arguments().unwrap();
        assert!(arguments.contains(&"file,id=console,path=/labs/a,,b/console.log".to_owned()));
        assert!(machine("/my labs/one").arguments().is_err());
    }
}
