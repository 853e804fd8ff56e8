//! `kubectl underlay explain`: the way of a pod or a prefix through all layers, link by link, with the first broken one
//! named.
//!
//! Facts are gathered first, from the API server and from the agents that are concerned; the links are judged from the
//! facts alone.

mod advertised;
mod chain;
mod inside;
mod outside;
mod routed;
mod screen;
mod target;
mod tenant;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_api::network::Network;
use underlay_net::cidr::host;
use underlay_runtime::report::{List, Question};
use underlay_world::Definition;

use crate::cluster::facts::{Facts, PodFacts};
use crate::cluster::networks::{network_name, title};
use crate::cluster::{Access, agents, list, listed, patiently, read, refused};
use crate::names::{self, some_of};
use crate::output::Output;
use chain::{Chain, Link};
use target::{Place, Target};

#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// A pod (NAMESPACE/NAME, or NAME), an address, a prefix, or a network (cudn/NAME, udn/NAMESPACE/NAME).
    #[arg(value_name = "POD|PREFIX|NETWORK")]
    target: String,
    /// The network that an address is meant in: networks may have the same addresses.
    #[arg(long)]
    network: Option<String>,
    /// Namespace of a pod that is given without one. Without it, the one of the kubeconfig.
    #[arg(short, long)]
    namespace: Option<String>,
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// Explains. Exits with 0 if no link is broken, else with 1.
pub fn run(arguments: &ExplainArguments) -> Result<ExitCode> {
    let target = Target::parse(&arguments.target)?;
    let namespace = arguments.namespace.as_deref();
    let chain = arguments.access.run(async |client| match target {
        Target::Pod(own, name) => {
            let namespace = own.or_else(|| namespace.map(str::to_owned));
            let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
            explain_pod(&client, &namespace, &name).await
        }
        Target::Prefix(prefix) => explain_prefix(&client, prefix, arguments.network.as_deref()).await,
        Target::Network(name) => explain_network(&client, &name).await,
    })?;
    match arguments.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&screen::json(&chain))?),
        Output::Table => anstream::print!("{}", screen::text(&chain)),
    }
    Ok(if chain.first_broken().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn explain_pod(client: &Client, namespace: &str, name: &str) -> Result<Chain> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = patiently("the pod", Box::pin(api.get_opt(name))).await?;
    let object = found.map_err(|error| refused("the pod", error))?;
    let Some(object) = object else {
        bail!(
            "there is no pod {namespace}/{name}: write NAMESPACE/NAME, or -n NAMESPACE; kubectl get pods -A lists them"
        );
    };
    of_pod(client, read(client).await?, &PodFacts::read(&object)).await
}

async fn of_pod(client: &Client, mut facts: Facts, pod: &PodFacts) -> Result<Chain> {
    if !pod.pod.node.is_empty() {
        // Of the network of a tenant's pod: whom FRR tells of it.
        let network = facts.primary(&pod.pod.key.namespace).and_then(network_name).map(str::to_owned);
        let routes = network.as_ref().map(|_| List { limit: Some(0), ..List::default() });
        let key = Some(pod.pod.key.to_string());
        let question = Question { pod: key, network, routes, ..Question::default() };
        facts.agents = agents::ask(client, [pod.pod.node.clone()], &question).await;
    }
    Ok(inside::pod(&facts, pod))
}

async fn explain_network(client: &Client, name: &str) -> Result<Chain> {
    let mut facts = read(client).await?;
    let definition = facts.the_network(name)?.clone();
    let nodes: Vec<String> = facts.nodes.keys().cloned().collect();
    facts.agents = agents::ask(client, nodes.clone(), &Question::default()).await;
    let subnets = definition.network.as_ref().map(Network::subnets).unwrap_or_default();
    for subnet in subnets.into_iter().filter(|_| routed::without_overlay(&definition).is_some()) {
        let question = Question {
            to: Some(subnet),
            network: Some(definition.network_name()),
            routes: Some(List::default()),
            ..Question::default()
        };
        for (node, agent) in agents::ask(client, nodes.clone(), &question).await {
            facts.add_learned(&node, agent);
        }
    }
    Ok(tenant::network(&facts, &definition))
}

/// An address or prefix in networks of tenants. Several may have it: then one must be named.
async fn in_networks(
    client: &Client,
    mut facts: Facts,
    prefix: IpNet,
    titles: Vec<String>,
    network: Option<&str>,
) -> Result<Chain> {
    let wanted = network.map(|word| facts.the_network(word).map(title)).transpose()?;
    if let Some(wanted) = wanted.as_ref().filter(|wanted| !titles.contains(wanted)) {
        bail!("{} is not in network {wanted}, but in {}", names::short(prefix), some_of(&titles));
    }
    let titles = wanted.map_or(titles, |wanted| vec![wanted]);
    let pods: Vec<Pod> = listed(&Api::all(client.clone()), &ListParams::default()).await?.unwrap_or_default();
    let pods: Vec<PodFacts> = pods.iter().map(PodFacts::read).collect();
    match target::owners(&facts, &pods, prefix, &titles).as_slice() {
        [(_, pod)] => return of_pod(client, facts, pod).await,
        [] => {}
        many => {
            let many: Vec<String> =
                many.iter().map(|(title, pod)| format!("pod {} on {title}", pod.pod.key)).collect();
            bail!("{} is the address of {}: say which with --network", names::short(prefix), some_of(&many))
        }
    }
    let [title] = titles.as_slice() else {
        bail!("{} is in networks {}: say which with --network", names::short(prefix), some_of(&titles))
    };
    let nodes: Vec<String> = facts.nodes.keys().cloned().collect();
    facts.agents = agents::ask(client, nodes, &Question::default()).await;
    Ok(tenant::subnet(&facts, facts.the_network(title)?, prefix))
}

async fn explain_prefix(client: &Client, prefix: IpNet, network: Option<&str>) -> Result<Chain> {
    let mut facts = read(client).await?;
    let network = network.filter(|word| *word != DEFAULT_NETWORK);
    match target::place(&facts, prefix) {
        Place::Networks(titles) => in_networks(client, facts, prefix, titles, network).await,
        // What is in no network of a tenant's is outside for all of them.
        _ if network.is_some() => elsewhere(client, facts, prefix, network).await,
        Place::Inside(node) => {
            if let Some(pod) = pod_at(client, &node, prefix).await? {
                return of_pod(client, facts, &pod).await;
            }
            facts.agents = agents::ask(client, [node.clone()], &Question::default()).await;
            Ok(inside::subnet(&facts, &node, prefix))
        }
        Place::Across(nodes) => {
            let subnets = nodes.iter().flat_map(|node| facts.subnets(node));
            let subnets: Vec<String> =
                subnets.filter(|subnet| prefix.contains(*subnet)).map(ToString::to_string).collect();
            bail!(
                "{prefix} holds subnets of several nodes ({}): ask for one of {}",
                some_of(&nodes),
                some_of(&subnets)
            )
        }
        Place::Node(node) => {
            let link = Link::note("Node", format!("{} is an address of node {node}", prefix.addr()));
            let conclusion =
                "it is reached as any machine of the nodes' network; no route of ours leads there";
            Ok(Chain::new(prefix.addr().to_string(), vec![link], conclusion))
        }
        Place::Outside => elsewhere(client, facts, prefix, None).await,
    }
}

/// Neither in a node's subnet nor a node.
async fn elsewhere(client: &Client, mut facts: Facts, prefix: IpNet, network: Option<&str>) -> Result<Chain> {
    let definition = network.map(|word| facts.the_network(word).cloned()).transpose()?;
    let services = list::<Service>(client).await?.unwrap_or_default();
    if let Some(service) = target::service(&services, prefix) {
        let link =
            Link::note("Service", format!("{} is the cluster address of Service {service}", prefix.addr()));
        let conclusion =
            "pods and nodes reach it; it is an address in the cluster only, and is not advertised";
        return Ok(Chain::new(prefix.addr().to_string(), vec![link], conclusion));
    }
    let network = definition.as_ref().map(Definition::network_name);
    let question = Question { to: Some(prefix), network, ..Question::default() };
    let nodes: Vec<String> = facts.nodes.keys().cloned().collect();
    facts.agents = agents::ask(client, nodes, &question).await;
    let mut chain = outside::judge(&facts, prefix);
    if let Some(definition) = &definition {
        chain.subject = format!("{}, for pods of {}", chain.subject, title(definition));
    }
    Ok(chain)
}

/// The pod that has an address, if it is one address and a pod has it.
async fn pod_at(client: &Client, node: &str, prefix: IpNet) -> Result<Option<PodFacts>> {
    if prefix.prefix_len() != prefix.max_prefix_len() {
        return Ok(None);
    }
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let pods: Vec<Pod> = listed(&Api::all(client.clone()), &on_node).await?.unwrap_or_default();
    let mut pods = pods.iter().map(PodFacts::read).filter(|pod| pod.pod.needs_port());
    Ok(pods.find(|pod| pod.recorded().iter().chain(&pod.addresses).any(|address| host(*address) == prefix)))
}
