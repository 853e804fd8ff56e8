//! Asking agents. They listen on their nodes, and the API server, which reaches every node, passes the question on: the
//! admin's desk need not be on the nodes' network, and the API server decides who may ask.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::Client;
use underlay_runtime::fault::text_with_sources;
use underlay_runtime::report::{AGENT_PORT, AgentReport, Question};

use super::facts::Agent;

/// How long an agent may take. It answers from memory.
const PATIENCE: Duration = Duration::from_secs(2);
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

async fn ask_one(client: &Client, node: &str, question: &Question) -> Agent {
    let query = question.render();
    let path = format!("/api/v1/nodes/http:{node}:{AGENT_PORT}/proxy/debug/report?{query}");
    let request = match http::Request::get(path).body(vec![]) {
        Ok(request) => request,
        Err(error) => return Agent::Silent(error.to_string()),
    };
    match tokio::time::timeout(PATIENCE, client.request::<AgentReport>(request)).await {
        Ok(Ok(report)) => Agent::Told(Box::new(report)),
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => Agent::Forbidden,
        Ok(Err(kube::Error::Api(status))) => Agent::Silent(status.message.trim().to_owned()),
        Ok(Err(error)) => Agent::Silent(text_with_sources(&error)),
        Err(_) => Agent::Silent(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}
