//! A router that has very many routes to tell, and those who count what became of them: in the kernel of the node that
//! hears it, and in the node's northbound database.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::time::timeout_at;
use underlay_ovsdb::{Client, Config, Selection, Subscription, open};

use crate::process::Process;
use crate::rig::{PATIENCE, Rig};

/// The router.
pub const ROUTER: &str = "tor";
/// The range that networks are measured with.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Where a node's database has the routes of its routers.
const ROUTES: &str = "Logical_Router_Static_Route";
/// Routes that the router gets at once, and the time it has to take them in.
const AT_ONCE: usize = 5000;
const TAKING_IN: Duration = Duration::from_millis(300);
/// How often the kernel's routes are counted: to count is work for the machine that is measured.
const LOOK: Duration = Duration::from_millis(20);

/// The place of this number.
pub fn destination(number: u32) -> String {
    format!("{}/32", Ipv4Addr::from(u32::from(FIRST) + number))
}

/// Gives the router routes, or takes them from it; it tells nobody of them yet. Some at a time: its BGP daemons do not
/// look again after they have missed some.
pub async fn change(rig: &Rig<'_>, verb: &str, count: u32) -> Result<()> {
    let file = rig.lab.shared_directory(ROUTER).join("batch");
    for first in (0..count).step_by(AT_ONCE) {
        let mut batch = String::new();
        for number in (first..count).take(AT_ONCE) {
            let _ = writeln!(batch, "route {verb} blackhole {}", destination(number));
        }
        fs::write(&file, batch).with_context(|| format!("writing {}", file.display()))?;
        rig.exec(ROUTER, &["ip", "-batch", "/lab/batch"])?;
        rig.rest(TAKING_IN).await?;
    }
    Ok(())
}

/// Lets the router tell its routes, or be silent about them.
pub fn tell(rig: &Rig<'_>, line: &str) -> Result<()> {
    let words = ["vtysh", "-c", "configure terminal", "-c", "router bgp 64513"];
    let words = [&words[..], &["-c", "address-family ipv4 unicast", "-c", line]].concat();
    rig.exec(ROUTER, &words).map(drop)
}

/// How many IPv4 routes the kernel of a process's machine has, in all tables.
pub fn in_kernel(process: &Process) -> Result<usize> {
    let file = process.entry("net/fib_triestat");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let prefixes = text.lines().filter_map(|line| line.trim().strip_prefix("Prefixes:"));
    Ok(prefixes.filter_map(|number| number.trim().parse::<usize>().ok()).sum())
}

/// Waits until the kernel has so many routes; returns when that was.
pub async fn until_in_kernel(process: &Process, good: impl Fn(usize) -> bool) -> Result<Instant> {
    let end = Instant::now() + PATIENCE;
    loop {
        let now = in_kernel(process)?;
        if good(now) {
            return Ok(Instant::now());
        }
        if Instant::now() > end {
            bail!("the kernel has {now} routes, and that for {PATIENCE:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The routes in a node's northbound database, as they come and go.
pub struct Rows {
    updates: Subscription,
    /// How many there are.
    pub count: usize,
    /// The session ends with it.
    _client: Client,
}

impl Rows {
    /// Begins to follow.
    pub async fn follow(socket: PathBuf) -> Result<Self> {
        let selection = Selection::new().columns(ROUTES, &["ip_prefix"]);
        let remote = format!("unix:{}", socket.display()).parse()?;
        let (client, session) = open(Config::new(remote, "OVN_Northbound", selection));
        tokio::spawn(session.run());
        let mut rows = Self { updates: client.subscribe(), count: 0, _client: client };
        rows.next(Instant::now() + PATIENCE).await?;
        Ok(rows)
    }

    /// Waits until there are so many; returns when that was.
    pub async fn until(&mut self, good: impl Fn(usize) -> bool) -> Result<Instant> {
        let end = Instant::now() + PATIENCE;
        let mut when = Instant::now();
        while !good(self.count) {
            when = self.next(end).await.with_context(|| format!("{} routes in OVN", self.count))?;
        }
        Ok(when)
    }

    async fn next(&mut self, end: Instant) -> Result<Instant> {
        let update = timeout_at(end.into(), self.updates.next()).await?.context("the database is gone")?;
        self.count = update.replica.table(ROUTES).map_or(0, underlay_ovsdb::Table::len);
        Ok(Instant::now())
    }
}
