//! Asking agents. They listen on their nodes, and the API server, which reaches every node, passes the question on: the
//! admin's desk need not be on the nodes' network, and the API server decides who may ask.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::Client;
use underlay_runtime::fault::text_with_sources;
use underlay_runtime::report::{AGENT_PORT, AgentReport, List, Question};

use super::facts::Agent;

/// How long an agent may take. It answers from memory.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take where it has many routes to tell.
const PATIENCE_WITH_LISTS: Duration = Duration::from_secs(10);
/// How many are asked at once.
const AT_ONCE: usize = 32;

/// Asks the agents of these nodes.
pub async fn ask(
    client: &Client,
    nodes: impl IntoIterator<Item = String>,
    question: &Question,
) -> BTreeMap<String, Agent> {
    let one = async |node: String| {
        let answer = ask_one(client, &node, question).await;
        (node, answer)
    };
    stream::iter(nodes).map(one).buffer_unordered(AT_ONCE).collect().await
}

/// Asks for the pages of learned routes that come after those that were told, until there are none.
pub async fn ask_for_the_rest(client: &Client, agents: &mut BTreeMap<String, Agent>, question: &Question) {
    for (node, agent) in agents {
        let Agent::Told(report) = agent else { continue };
        for (network, page) in &mut report.learned {
            while let Some(last) = page.routes.last().filter(|_| page.more > 0) {
                let (network, after) = (Some(network.clone()), Some(last.destination));
                let routes = question.routes.map(|list| List { after, ..list });
                let next = Question { network, routes, ..question.clone() };
                let Agent::Told(mut next) = ask_one(client, node, &next).await else { break };
                let Some((_, next)) = next.learned.pop_first() else { break };
                page.more = if next.routes.is_empty() { 0 } else { next.more };
                page.routes.extend(next.routes);
            }
        }
    }
}

async fn ask_one(client: &Client, node: &str, question: &Question) -> Agent {
    let query = question.render();
    let path = format!("/api/v1/nodes/http:{node}:{AGENT_PORT}/proxy/debug/report?{query}");
    let request = match http::Request::get(path).body(vec![]) {
        Ok(request) => request,
        Err(error) => return Agent::Silent(error.to_string()),
    };
    let patience = if question.routes.is_some() { PATIENCE_WITH_LISTS } else { PATIENCE };
    match tokio::time::timeout(patience, client.request::<AgentReport>(request)).await {
        Ok(Ok(report)) => Agent::Told(Box::new(report)),
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => Agent::Forbidden,
        Ok(Err(kube::Error::Api(status))) => Agent::Silent(status.message.trim().to_owned()),
        Ok(Err(error)) => Agent::Silent(text_with_sources(&error)),
        Err(_) => Agent::Silent(format!("no answer within {} s", patience.as_secs())),
    }
}
