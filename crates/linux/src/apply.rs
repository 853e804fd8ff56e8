//! Makes changes, one after the other, and goes on where one fails.

use std::collections::BTreeSet;
use std::io;

use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use rtnetlink::packet_route::RouteNetlinkMessage;
use underlay_desired::linux::Host;

use crate::diff::{Op, diff, missing_links};
use crate::fault::{Failure, Fault};
use crate::kernel::Kernel;
use crate::{message, sysctl};

/// Refuse if it is there already.
const ADD: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// Take the place of what is there.
const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;

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
        let have = self.observe(want).await?;
        let ops = diff(want, &have);
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
            Op::SetLink(change) => self.change(To::SetLink(message::link(change)), 0).await,
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
}
