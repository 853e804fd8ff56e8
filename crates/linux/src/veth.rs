//! The interface of a pod: a pair of links, one end on the node, the other in the pod.
//!
//! In: names, addresses and the pod's network namespace. Out: both ends set up. Everything may be asked for twice: what
//! an earlier attempt left is made right or made anew. No program is run, and the pod's end is born in the pod, so the
//! node never sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::Path;

use futures::future::try_join_all;
use ipnet::IpNet;
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo,
    LinkMessage,
};
use rtnetlink::packet_route::route::{RouteFlags, RouteMessage};
use underlay_net::{Family, Mac};

use crate::diff::LinkChange;
use crate::fault::Fault;
use crate::kernel::Kernel;
use crate::message;
use crate::observe::{Link, Names, names, read_link};
use crate::sysctl;

/// Every namespace's own.
const LOOPBACK: &str = "lo";

/// A pair of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Veth {
    /// Name of the node's end.
    pub host: String,
    /// Name of the pod's end.
    pub pod: String,
    /// Largest packet, of both.
    pub mtu: u32,
    /// MAC address of the pod's end.
    pub mac: Mac,
}

/// How a pod's interface should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodInterface {
    /// Its name in the pod.
    pub name: String,
    /// MAC address.
    pub mac: Mac,
    /// Largest packet.
    pub mtu: u32,
    /// Addresses with the length of their subnet.
    pub addresses: Vec<IpNet>,
    /// Where everything else goes: one for each family at most.
    pub gateways: Vec<IpAddr>,
    /// Further routes; without a gateway, what is on the link itself.
    pub routes: Vec<(IpNet, Option<IpAddr>)>,
}

/// How a pod's interface is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodState {
    /// The link.
    pub link: Link,
    /// Addresses, without those the kernel gave itself (link-local).
    pub addresses: BTreeSet<IpNet>,
    /// Routes out of it with a gateway.
    pub routes: BTreeSet<(IpNet, IpAddr)>,
}

impl Kernel {
    /// Makes a pair with one end here and the other in a pod, and sets up the node's end. A pair that is there stays, and
    /// what travels over it is not disturbed; anything else that has these names goes. Returns whether it stayed.
    pub async fn create_veth(&self, veth: &Veth, netns: &Path) -> Result<bool, Fault> {
        let pod = File::open(netns).map_err(|source| Fault::Namespace { path: netns.to_owned(), source })?;
        let request = || RouteNetlinkMessage::NewLink(pair(veth, &pod));
        let what = || format!("make link {} with its end {} in {}", veth.host, veth.pod, netns.display());
        let mut kept = false;
        match self.change(request(), NLM_F_CREATE | NLM_F_EXCL).await {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let inside = Self::open_in(netns).await?;
                kept = self.is_pair(veth, &inside).await?;
                if kept {
                    Ok(())
                } else {
                    self.delete_link(&veth.host).await?;
                    inside.delete_link(&veth.pod).await?;
                    self.change(request(), NLM_F_CREATE | NLM_F_EXCL).await
                }
            }
            result => result,
        }
        .map_err(Fault::change(what()))?;
        self.set_up_host_end(&veth.host)
            .await
            .map_err(Fault::change(format!("set up link {}", veth.host)))?;
        Ok(kept)
    }

    /// Whether both ends are there and are each other's.
    async fn is_pair(&self, veth: &Veth, inside: &Self) -> Result<bool, Fault> {
        let (host, pod) = (self.ends(&veth.host).await?, inside.ends(&veth.pod).await?);
        Ok(host.zip(pod).is_some_and(|(host, pod)| host.1 == Some(pod.0) && pod.1 == Some(host.0)))
    }

    /// The kernel's numbers for a link and for the other end of its pair.
    async fn ends(&self, name: &str) -> Result<Option<(u32, Option<u32>)>, Fault> {
        let request = RouteNetlinkMessage::GetLink(message::link_named(name));
        let answer = self.get(request).await.map_err(Fault::read(format!("link {name}")))?;
        let Some(RouteNetlinkMessage::NewLink(link)) = answer else { return Ok(None) };
        let other = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Link(index) => Some(*index),
            _ => None,
        });
        Ok(Some((link.header.index, other)))
    }

    /// The node's end only carries the pod's packets: it has no addresses of its own, not even link-local ones. The
    /// kernel takes it up before it makes it silent, but gives no address while the pod's end is still down. (To switch
    /// IPv6 off altogether is a setting that waits for the kernel's lock behind everybody else.)
    async fn set_up_host_end(&self, name: &str) -> io::Result<()> {
        let mut message = message::link_up(0);
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let no_addresses = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![no_addresses])]));
        self.change(RouteNetlinkMessage::SetLink(message), 0).await
    }

    /// A link by name; none if it is not there.
    pub async fn link(&self, name: &str) -> Result<Option<Link>, Fault> {
        let request = RouteNetlinkMessage::GetLink(message::link_named(name));
        let answer = self.get(request).await.map_err(Fault::read(format!("link {name}")))?;
        Ok(answer.and_then(read_link).map(|(_, link)| link))
    }

    /// Removes a link, and with it the other end of its pair. That it is gone already is just as well.
    pub async fn delete_link(&self, name: &str) -> Result<(), Fault> {
        let request = RouteNetlinkMessage::DelLink(message::link_named(name));
        self.remove(request).await.map_err(Fault::change(format!("delete link {name}")))
    }
}

fn pair(veth: &Veth, pod: &File) -> LinkMessage {
    let mut peer = message::link_named(&veth.pod);
    peer.attributes.push(LinkAttribute::Mtu(veth.mtu));
    peer.attributes.push(LinkAttribute::Address(veth.mac.0.to_vec()));
    peer.attributes.push(LinkAttribute::NetNsFd(pod.as_raw_fd()));
    let mut message = message::link_named(&veth.host);
    message.attributes.push(LinkAttribute::Mtu(veth.mtu));
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    message
}

/// Sets up a pod's interface, and its loopback.
pub async fn configure_pod(netns: &Path, interface: &PodInterface) -> Result<(), Fault> {
    let kernel = Kernel::open_in(netns).await?;
    let links = kernel.links().await?;
    let what = |part: &str| format!("{part} of {} in {}", interface.name, netns.display());
    let Some(link) = links.get(&interface.name) else {
        return Err(Fault::read(what("state"))(io::ErrorKind::NotFound.into()));
    };
    let index = link.index;
    set_up(&kernel, interface, &links, link).await.map_err(Fault::change(what("set link state")))?;
    let add = |message| kernel.change(message, NLM_F_CREATE | NLM_F_REPLACE);
    let addresses = interface.addresses.iter().map(|net| message::address(net, index, false));
    let addresses = try_join_all(addresses.map(|message| add(RouteNetlinkMessage::NewAddress(message))));
    addresses.await.map_err(Fault::change(what("set addresses")))?;
    // What is on the link comes first: gateways may be reached by it.
    for (net, _) in interface.routes.iter().filter(|(_, gateway)| gateway.is_none()) {
        let message = RouteNetlinkMessage::NewRoute(message::route(net, None, index));
        add(message).await.map_err(Fault::change(what("set routes")))?;
    }
    let defaults = interface.gateways.iter().map(|ip| (message::everywhere(Family::of(*ip)), *ip));
    let further = interface.routes.iter().filter_map(|(net, gateway)| Some((*net, (*gateway)?)));
    let routes = defaults.chain(further).map(|(net, gateway)| gateway_route(&net, gateway, index));
    let routes = try_join_all(routes.map(|message| add(RouteNetlinkMessage::NewRoute(message))));
    routes.await.map(drop).map_err(Fault::change(what("set routes")))
}

/// A gateway need not be in the pod's subnet: it is on this link because we say so.
fn gateway_route(net: &IpNet, gateway: IpAddr, index: u32) -> RouteMessage {
    let mut message = message::route(&net.trunc(), Some(gateway), index);
    message.header.flags |= RouteFlags::Onlink;
    message
}

/// Settings of a pod's interface. Everything it has is told to it and nobody else has its addresses: it asks no router,
/// and nobody whether an address is taken. Such questions go to all pods of the node, which is work for each of them and
/// for the switch every time a pod starts.
const QUIET: [&str; 3] = ["accept_ra", "accept_dad", "dad_transmits"];

/// Takes up the interface and the loopback; most runtimes did the latter, and what need not be said waits for nobody.
async fn set_up(
    kernel: &Kernel,
    interface: &PodInterface,
    links: &BTreeMap<String, Link>,
    link: &Link,
) -> io::Result<()> {
    if let Some(loopback) = links.get(LOOPBACK).filter(|loopback| !loopback.up) {
        kernel.change(RouteNetlinkMessage::SetLink(message::link_up(loopback.index)), 0).await?;
    }
    let settings = QUIET.map(|leaf| format!("net.ipv6.conf.{}.{leaf}", interface.name));
    let write = move || settings.iter().try_for_each(|name| sysctl::write_if_there(name, "0"));
    kernel.namespace().enter(write).await?;
    // A link that is told its own MAC address again forgets its neighbours.
    let change = LinkChange {
        name: interface.name.clone(),
        index: link.index,
        mtu: Some(interface.mtu).filter(|mtu| *mtu != link.mtu),
        mac: Some(interface.mac).filter(|mac| Some(*mac) != link.mac),
        vrf: None,
    };
    kernel.change(RouteNetlinkMessage::SetLink(message::link(&change)), 0).await
}

/// Reads how a pod's interface is; none if it is not there.
pub async fn read_pod(netns: &Path, name: &str) -> Result<Option<PodState>, Fault> {
    let kernel = Kernel::open_in(netns).await?;
    let links = kernel.links().await?;
    let Some(link) = links.get(name).cloned() else { return Ok(None) };
    // Only this link has a name here, so only what is on it is kept.
    let names: Names = names(&links).into_iter().filter(|(index, _)| *index == link.index).collect();
    let addresses = kernel.addresses(&names).await?.into_iter().map(|held| held.address.net);
    let addresses = addresses.filter(|net| !is_link_local(net)).collect();
    let routes = kernel.gateways(&names).await?;
    Ok(Some(PodState { link, addresses, routes }))
}

fn is_link_local(net: &IpNet) -> bool {
    matches!(net, IpNet::V6(v6) if v6.addr().is_unicast_link_local())
}
