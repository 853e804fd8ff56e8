//! What a node has at one moment, as other tools than ours tell it, in lines that can be compared.

use std::collections::BTreeMap;

use underlay_testkit::{LabUnderTest, wait_for};

use crate::cluster::PATIENCE;
use crate::node::sh;

/// Northbound database with the identities of all rows: a row that was made anew is another one. What OVN's own daemons
/// write into it is left out.
const NORTHBOUND: &str = "\
ovsdb-client --format=csv --no-headings dump unix:/run/ovn/ovnnb_db.sock | grep '^[0-9a-f]\\{8\\}-' > /tmp/nb
for uuid in $(ovn-nbctl --no-heading --columns=_uuid list NB_Global); do grep -v ^$uuid /tmp/nb; done > /tmp/nb2
sed -E 's/,(\\[\\]|true|false)$//' /tmp/nb2";

/// Southbound database: what there is, not when and under which number it came.
const SOUTHBOUND: &str = "\
ovn-sbctl -f csv --no-headings --columns=logical_port,type,mac,options,external_ids list Port_Binding
ovn-sbctl -f csv --no-headings --columns=external_ids list Datapath_Binding \\
    | sed -E 's/(name2?|logical-(router|switch))=[^,}]*//g'
ovn-sbctl -f csv --no-headings --columns=name,hostname,other_config list Chassis
ovn-sbctl -f csv --no-headings --columns=ip,type,options list Encap
ovn-sbctl -f csv --no-headings --columns=name,addresses list Address_Set
ovn-sbctl -f csv --no-headings --columns=name,vips,options list Load_Balancer
ovn-sbctl -f csv --no-headings --columns=logical_port,ip,mac list Static_MAC_Binding
ovn-sbctl lflow-list | sed -E 's/0x[0-9a-f]{8}//; s/\\([0-9a-f-]{36}\\)//; s/\\(0x.*\\)//'";

/// Ports of the switch and flows of the bridge that we share.
const SWITCH: &str = "\
ovs-vsctl -f csv --no-headings --columns=name,type,external_ids list Interface \\
    | sed -E 's/ ovn-installed(-ts)?=\"\"[a-z0-9]+\"\",//g'
ovs-ofctl -O OpenFlow15 --no-stats dump-flows br-ex";

/// The kernel. What it knows for a while only is left out.
const KERNEL: &str = "\
ip -br link | sed -E 's/@if[0-9]+//; s/ +(UP|DOWN|UNKNOWN) +/ /'
ip -br address | sed -E 's/@if[0-9]+//; s/ +(UP|DOWN|UNKNOWN) +/ /'
ip route | sed -E 's/ nhid [0-9]+//'
ip -6 route | sed -E 's/ nhid [0-9]+//'
ip rule
ip -6 rule
ip -4 neighbor show nud permanent
ip -6 neighbor show nud permanent";

const FILTER: &str = "nft --stateless list ruleset 2> /dev/null";
const SPEAKER: &str = "vtysh -c 'show running-config'";

/// Lines by the part of the node that they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<&'static str, Vec<String>>);

impl Snapshot {
    /// Looks at what the agent of a node is answerable for.
    pub fn of(lab: &LabUnderTest, node: &str) -> Self {
        let parts = [("northbound", NORTHBOUND), ("switch", SWITCH), ("kernel", KERNEL)];
        let parts = parts.into_iter().chain([("filter", FILTER), ("frr", SPEAKER)]);
        Self::look(lab, node, &parts.collect::<Vec<_>>())
    }

    /// Looks until nothing changes any more: what was done a moment ago may still have consequences.
    pub fn at_rest(lab: &LabUnderTest, node: &str) -> Self {
        wait_for("the node to come to rest", PATIENCE, || {
            let first = Self::of(lab, node);
            std::thread::sleep(std::time::Duration::from_secs(1));
            let second = Self::of(lab, node);
            let changes = second.since(&first);
            if changes.is_empty() { Ok(second) } else { Err(changes.join("\n")) }
        })
    }

    /// The same with rows of databases that may be others, as long as they say the same.
    pub fn without_identities(mut self) -> Self {
        for lines in self.0.values_mut() {
            *lines = lines.iter().map(|line| anonymous(line)).collect();
            lines.sort();
        }
        self
    }

    /// Looks also at what OVN makes of it.
    pub fn with_southbound(lab: &LabUnderTest, node: &str) -> Self {
        let mut this = Self::of(lab, node);
        // Flows of the southbound database follow the northbound one.
        sh(lab, node, "ovn-nbctl --wait=hv --timeout=30 sync");
        this.0.extend(Self::look(lab, node, &[("southbound", SOUTHBOUND)]).0);
        this
    }

    fn look(lab: &LabUnderTest, node: &str, parts: &[(&'static str, &str)]) -> Self {
        const MARK: &str = "=== ";
        let scripts = parts.iter().map(|(name, script)| format!("echo '{MARK}{name}'\n{script}\n"));
        let text = sh(lab, node, &scripts.collect::<Vec<_>>().concat());
        let mut found = BTreeMap::new();
        for section in text.split(MARK).skip(1) {
            let (title, lines) = section.split_once('\n').unwrap_or((section, ""));
            let name = parts.iter().map(|(name, _)| *name).find(|name| *name == title).expect("a part");
            let mut lines: Vec<String> = lines.lines().map(|line| line.trim_end().to_owned()).collect();
            lines.sort();
            found.insert(name, lines);
        }
        Self(found)
    }

    /// What came and what went since another one, in lines with a sign.
    pub fn since(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, now) in &self.0 {
            let old = before.0.get(name).map(Vec::as_slice).unwrap_or_default();
            lines.extend(surplus(old, now).map(|line| format!("{name}: - {line}")));
            lines.extend(surplus(now, old).map(|line| format!("{name}: + {line}")));
        }
        lines
    }
}

/// Lines that one has more often than the other.
fn surplus<'a>(one: &'a [String], other: &'a [String]) -> impl Iterator<Item = &'a String> {
    let count = |lines: &[String], line: &String| lines.iter().filter(|own| *own == line).count();
    let mut distinct: Vec<&String> = one.iter().collect();
    distinct.dedup();
    distinct.into_iter().filter(move |line| count(one, line) > count(other, line))
}

/// A line without the identities of rows in it.
fn anonymous(line: &str) -> String {
    let is_identity = |word: &str| {
        let parts: Vec<usize> = word.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12] && word.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
    };
    let word = |word: &str| if is_identity(word) { "row".to_owned() } else { word.to_owned() };
    let separators = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
    line.split_inclusive(separators)
        .map(|piece| match piece.strip_suffix(separators) {
            Some(text) => format!("{}{}", word(text), &piece[text.len()..]),
            None => word(piece),
        })
        .collect()
}
