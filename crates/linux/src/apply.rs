//! Makes changes, one after the other, and goes on where one fails.

use std::collections::BTreeSet;
use std::io;

use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::LinkAttribute;
use underlay_desired::linux::Host;

use crate::diff::{LinkChange, Op, diff, missing_links};
use crate::fault::{Failure, Fault};
use crate::kernel::Kernel;
use crate::observe::read_link;
use crate::{message, sysctl};

/// Refuse if it is there already.
const ADD: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// Take the place of what is there.
const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;

/// A VRF device that is made only to see whether the kernel can.
const VRF_ON_TRIAL: &str = "underlay-trial";
/// Its table, which nobody looks into.
const VRF_TABLE_ON_TRIAL: u32 = 0x7fff_ff55;

/// What a comparison led to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Changes that were made, in people's words.
    pub changes: Vec<String>,
    /// Links that something waits for.
    pub missing_links: BTreeSet<String>,
}

impl Kernel {
    /// Observes, compares and makes the difference. Nothing is written when nothing differs.
    pub async fn sync(&self, want: &Host) -> Result<Report, Fault> {
        let mut have = self.observe(want).await?;
        let mut ops = diff(want, &have);
        // What others have is worth a look only where it decides something.
        if ops.iter().any(|op| matches!(op, Op::ReplaceRoute(..))) {
            have.contested = self.contested(&have).await?;
            ops = diff(want, &have);
        }
        self.apply(&ops).await?;
        let changes = ops.iter().map(Op::to_string).collect();
        Ok(Report { changes, missing_links: missing_links(want, &have) })
    }

    /// Makes changes in their order. One that fails does not keep the others back; all failures are told at the end.
    pub async fn apply(&self, ops: &[Op]) -> Result<(), Fault> {
        let mut failures = Vec::new();
        for op in ops {
            if let Err(error) = self.apply_one(op).await {
                failures.push(Failure { what: op.to_string(), error });
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(Fault::Changes(failures)) }
    }

    async fn apply_one(&self, op: &Op) -> io::Result<()> {
        use RouteNetlinkMessage as To;
        match op {
            Op::DeleteRoute(old) => self.remove(To::DelRoute(message::old_route(old))).await,
            Op::DeleteNeighbor(old, index) => {
                self.remove(To::DelNeighbour(message::neighbor(old, *index))).await
            }
            Op::DeleteAddress(old, index) => {
                self.remove(To::DelAddress(message::own_address(old, *index))).await
            }
            Op::DeleteRule(old) => self.remove(To::DelRule(message::rule(old))).await,
            Op::SetSysctl(name, value) => {
                let (name, value) = (name.clone(), value.clone());
                self.namespace().enter(move || sysctl::write(&name, &value)).await
            }
            Op::DeleteVrf(_, index) => self.remove(To::DelLink(message::link_numbered(*index))).await,
            Op::AddVrf(name, table) => self.change(To::NewLink(message::vrf(name, *table)), ADD).await,
            Op::SetLink(change) => self.set_link(change).await,
            Op::AddAddress(new, index) => {
                self.change(To::NewAddress(message::own_address(new, *index)), ADD).await
            }
            Op::ReplaceAddress(new, index) => {
                self.change(To::NewAddress(message::own_address(new, *index)), REPLACE).await
            }
            Op::AddNeighbor(new, index) => {
                self.change(To::NewNeighbour(message::neighbor(new, *index)), ADD).await
            }
            Op::ReplaceNeighbor(new, index) => {
                self.change(To::NewNeighbour(message::neighbor(new, *index)), REPLACE).await
            }
            Op::AddRoute(new, index) => self.change(To::NewRoute(message::own_route(new, *index)), ADD).await,
            Op::ReplaceRoute(new, index) => {
                self.change(To::NewRoute(message::own_route(new, *index)), REPLACE).await
            }
            Op::AddTableEnd(new) => self.change(To::NewRoute(message::table_end(*new)), ADD).await,
            Op::DeleteTableEnd(old) => self.remove(To::DelRoute(message::table_end(*old))).await,
            Op::AddRule(new) => self.change(To::NewRule(message::rule(new)), ADD).await,
        }
    }

    /// The number of a VRF device that was only just made is asked for.
    async fn set_link(&self, change: &LinkChange) -> io::Result<()> {
        let mut message = message::link(change);
        if let Some(vrf) = &change.vrf {
            let answer = self.get(RouteNetlinkMessage::GetLink(message::link_named(vrf))).await?;
            let link = answer.and_then(read_link).map(|(_, link)| link);
            let Some(link) = link.filter(|link| link.ours && link.vrf.is_some()) else {
                let error = format!("there is no VRF {vrf} of our making");
                return Err(io::Error::new(io::ErrorKind::NotFound, error));
            };
            message.attributes.push(LinkAttribute::Controller(link.index));
        }
        self.change(RouteNetlinkMessage::SetLink(message), 0).await
    }

    /// Whether the kernel has VRF devices. Only to make one tells: the kernel may load what it needs for that.
    pub async fn has_vrf(&self) -> Result<bool, Fault> {
        let what = || format!("try a VRF device, {VRF_ON_TRIAL}");
        let trial = message::vrf(VRF_ON_TRIAL, VRF_TABLE_ON_TRIAL);
        match self.change(RouteNetlinkMessage::NewLink(trial), ADD).await {
            // One that an earlier attempt left behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.raw_os_error() == Some(nix::libc::EOPNOTSUPP) => return Ok(false),
            result => result.map_err(Fault::change(what()))?,
        }
        let trial = RouteNetlinkMessage::DelLink(message::link_named(VRF_ON_TRIAL));
        self.remove(trial).await.map_err(Fault::change(what()))?;
        Ok(true)
    }
}
