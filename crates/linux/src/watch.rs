//! Tells when to look again.
//!
//! Out: events that say what kind of thing changed, not what: whoever hears one looks at the whole. Events that nobody
//! has taken yet are kept once each, so a flood costs no more than a drop. Of routes that BGP brought there may be very
//! many, so that to look at all of them for the sake of one is too much: their changes are told one by one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt, stream};
use rtnetlink::MulticastGroup as Group;
use rtnetlink::packet_core::{NLM_F_REPLACE, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::route::{RouteMessage, RouteProtocol};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::fault::Fault;
use crate::kernel::Kernel;
use crate::observe::BgpChange;

/// Number of the table where the kernel keeps its own addresses.
const LOCAL_TABLE: u8 = 255;

/// So many changes of BGP's are kept for who has not taken them yet.
const CHANGES: usize = 200_000;

/// The groups that tell what we look at.
const GROUPS: [Group; 7] = [
    Group::Link,
    Group::Ipv4Ifaddr,
    Group::Ipv6Ifaddr,
    Group::Ipv4Route,
    Group::Ipv6Route,
    Group::Ipv4Rule,
    Group::Ipv6Rule,
];

/// What kind of thing changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The kernel had more to tell than we could hear: anything may have changed.
    Overrun,
    /// A link came, went or changed.
    Links,
    /// An address came or went.
    Addresses,
    /// A route came or went that BGP did not bring.
    Routes,
    /// These routes of BGP's came or went, in this order.
    Bgp(Vec<BgpChange>),
    /// A rule came or went.
    Rules,
}

impl Kernel {
    /// Listens from now on. To miss nothing, listen first and look then. The stream ends only when the socket breaks.
    pub async fn watch(&self) -> Result<impl Stream<Item = Event> + Send + use<>, Fault> {
        self.watch_without(|_| false).await
    }

    /// As [`Self::watch`], but passes over what happens to links of some names themselves.
    pub async fn watch_without(
        &self,
        passed_over: fn(&str) -> bool,
    ) -> Result<impl Stream<Item = Event> + Send + use<>, Fault> {
        self.listen(passed_over, true).await
    }

    /// As [`Self::watch_without`], but does not tell of routes that BGP brings either.
    pub async fn watch_besides_bgp(
        &self,
        passed_over: fn(&str) -> bool,
    ) -> Result<impl Stream<Item = Event> + Send + use<>, Fault> {
        self.listen(passed_over, false).await
    }

    async fn listen(
        &self,
        passed_over: fn(&str) -> bool,
        with_bgp: bool,
    ) -> Result<impl Stream<Item = Event> + Send + use<>, Fault> {
        let socket = self.namespace().listener(GROUPS.iter().map(|group| *group as u32).collect()).await?;
        let (connection, handle, mut messages) = rtnetlink::from_socket(socket);
        let inbox = Arc::new(Inbox::default());
        // Both tasks end with the set, which goes with the stream.
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        let target = Arc::clone(&inbox);
        tasks.spawn(async move {
            let _alive = handle;
            while let Some((message, _)) = messages.next().await {
                if !with_bgp && bgp_route(&message).is_some() {
                    continue;
                }
                match bgp_change(&message) {
                    Some(change) => target.put_change(change),
                    None => event(&message, passed_over).into_iter().for_each(|event| target.put(event)),
                }
            }
            target.close();
        });
        Ok(Box::pin(stream::unfold((inbox, tasks), |(inbox, tasks)| async move {
            let event = inbox.take().await?;
            Some((event, (inbox, tasks)))
        })))
    }
}

fn event(message: &NetlinkMessage<Message>, passed_over: fn(&str) -> bool) -> Option<Event> {
    let inner = match &message.payload {
        NetlinkPayload::Overrun(_) => return Some(Event::Overrun),
        NetlinkPayload::InnerMessage(inner) => inner,
        _ => return None,
    };
    match inner {
        Message::NewLink(link) | Message::DelLink(link) => {
            (!name(link).is_some_and(passed_over)).then_some(Event::Links)
        }
        Message::NewAddress(_) | Message::DelAddress(_) => Some(Event::Addresses),
        Message::NewRoute(route) | Message::DelRoute(route) => {
            // What the kernel keeps for itself comes and goes with addresses and links.
            let own = route.header.table == LOCAL_TABLE && route.header.protocol == RouteProtocol::Kernel;
            (!own).then_some(Event::Routes)
        }
        Message::NewRule(_) | Message::DelRule(_) => Some(Event::Rules),
        _ => None,
    }
}

/// The route of BGP's that a message is about, and whether it is gone.
fn bgp_route(message: &NetlinkMessage<Message>) -> Option<(&RouteMessage, bool)> {
    let NetlinkPayload::InnerMessage(inner) = &message.payload else { return None };
    let (route, gone) = match inner {
        Message::NewRoute(route) => (route, false),
        Message::DelRoute(route) => (route, true),
        _ => return None,
    };
    (route.header.protocol == RouteProtocol::Bgp).then_some((route, gone))
}

fn bgp_change(message: &NetlinkMessage<Message>) -> Option<BgpChange> {
    let (route, gone) = bgp_route(message)?;
    let replaces = message.header.flags & NLM_F_REPLACE != 0;
    BgpChange::read(route.clone(), gone, replaces)
}

fn name(link: &LinkMessage) -> Option<&str> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Events that nobody has taken yet.
#[derive(Debug, Default)]
struct Inbox {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    events: BTreeSet<Event>,
    changes: Vec<BgpChange>,
    closed: bool,
}

impl Inbox {
    fn put(&self, event: Event) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).events.insert(event);
        self.arrived.notify_one();
    }

    /// Keeps a change of BGP's. Whoever is that late had better look at the whole.
    fn put_change(&self, change: BgpChange) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.changes.len() < CHANGES {
            pending.changes.push(change);
        } else {
            pending.changes.clear();
            pending.events.insert(Event::Overrun);
        }
        drop(pending);
        self.arrived.notify_one();
    }

    fn close(&self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.arrived.notify_one();
    }

    /// The next event; none when no more will come.
    async fn take(&self) -> Option<Event> {
        loop {
            {
                let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(event) = pending.events.pop_first() {
                    return Some(event);
                }
                if !pending.changes.is_empty() {
                    return Some(Event::Bgp(std::mem::take(&mut pending.changes)));
                }
                if pending.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }
}
