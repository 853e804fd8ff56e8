//! Whether the nodes that may hold egress IPs live.
//!
//! In: nodes and the addresses by which they are asked. Out: those that do not answer, as changes to the world. A kubelet
//! that is gone shows in its node's object after most of a minute; here nodes are asked themselves, once a second, and
//! only those that may hold egress IPs: their agents say `ok` where their metrics are.
//!
//! Silence means that the node is gone, after as many seconds as the setting says. A node that refuses is there, and so
//! are its switch and all connections; its agent may be about to start again. It is given ten times as long.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};
use underlay_runtime::feed::Update;
use underlay_world::World;

/// What is watched, among the kinds of objects.
pub const NAME: &str = "life of nodes";

/// How often nodes are asked, and how long an answer may take.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many times as long a node may refuse as it may be silent.
const REFUSALS: u32 = 10;

/// Nodes, and the addresses by which they are asked.
pub type Targets = BTreeMap<String, Vec<IpAddr>>;

/// How nodes are asked.
#[derive(Debug, Clone, Copy)]
pub struct Probes {
    /// At which port.
    pub port: u16,
    /// How many answers may be missing; none asks nobody.
    pub patience: u32,
}

/// What a node does when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Well,
    Refused,
    Silence,
}

/// Watches from now on whoever is named, until nobody listens any more.
pub fn watch(probes: Probes) -> (watch::Sender<Targets>, BoxStream<'static, Update>) {
    let (targets, named) = watch::channel(Targets::new());
    let (silent, heard) = watch::channel(BTreeSet::new());
    if probes.patience > 0 {
        tokio::spawn(ask_all(probes, named, silent));
    }
    let first = Update::Listed { kind: NAME, edit: Box::new(|_| false) };
    let changes = stream::unfold(heard, |mut heard| async move {
        if heard.changed().await.is_err() {
            // Nobody asks.
            std::future::pending::<()>().await;
        }
        let silent = heard.borrow_and_update().clone();
        let edit = Box::new(move |world: &mut World| {
            let news = world.unreachable != silent;
            world.unreachable = silent;
            news
        });
        Some((Update::Change { kind: NAME, namespace: String::new(), edit }, heard))
    });
    (targets, stream::iter([first]).chain(changes).boxed())
}

/// Names the nodes that are to be asked.
pub fn publish(sender: &watch::Sender<Targets>, targets: Targets) {
    sender.send_if_modified(|before| {
        let news = *before != targets;
        *before = targets;
        news
    });
}

async fn ask_all(probes: Probes, targets: watch::Receiver<Targets>, silent: watch::Sender<BTreeSet<String>>) {
    let mut pulses = Pulses::default();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !silent.is_closed() {
        ticks.tick().await;
        let nodes = targets.borrow().clone();
        let questions =
            stream::iter(nodes).map(async |(node, addresses)| (node, ask(&addresses, probes.port).await));
        let answers: BTreeMap<String, Answer> = questions.buffer_unordered(usize::MAX).collect().await;
        let now = pulses.feel(&answers, probes.patience);
        silent.send_if_modified(|before| {
            for node in now.difference(before) {
                warn!(node, "a node that may hold egress IPs does not answer");
            }
            for node in before.difference(&now).filter(|node| answers.contains_key(*node)) {
                info!(node, "a node that may hold egress IPs answers again");
            }
            let news = *before != now;
            *before = now;
            news
        });
    }
}

/// How often each node has been missing, one time after the other.
#[derive(Debug, Default)]
struct Pulses(BTreeMap<String, (u32, u32)>);

impl Pulses {
    /// Takes note of the answers of all nodes. Returns those that have been missing for too long.
    fn feel(&mut self, answers: &BTreeMap<String, Answer>, patience: u32) -> BTreeSet<String> {
        self.0.retain(|node, _| answers.contains_key(node));
        for (node, answer) in answers {
            let (silences, misses) = self.0.entry(node.clone()).or_default();
            (*silences, *misses) = match answer {
                Answer::Well => (0, 0),
                Answer::Refused => (0, *misses + 1),
                Answer::Silence => (*silences + 1, *misses + 1),
            };
        }
        let gone = |(silences, misses): &(u32, u32)| *silences >= patience || *misses >= patience * REFUSALS;
        self.0.iter().filter(|(_, pulse)| gone(pulse)).map(|(node, _)| node.clone()).collect()
    }
}

/// Asks a node at all its addresses at once. It is enough if it answers at one.
async fn ask(addresses: &[IpAddr], port: u16) -> Answer {
    let questions = addresses.iter().map(|address| timeout(INTERVAL, ask_at(*address, port)));
    let mut answers: FuturesUnordered<_> = questions.collect();
    let mut answer = Answer::Silence;
    while let Some(one) = answers.next().await {
        match one {
            Ok(Ok(())) => return Answer::Well,
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => answer = Answer::Refused,
            _ => {}
        }
    }
    answer
}

async fn ask_at(address: IpAddr, port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect((address, port)).await?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n").await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    if head.starts_with(b"HTTP/1.") && head.ends_with(b" 200") {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn gone(pulses: &mut Pulses, answers: &[(&str, Answer)]) -> Vec<String> {
        let answers = answers.iter().map(|(node, answer)| ((*node).to_owned(), *answer)).collect();
        pulses.feel(&answers, 3).into_iter().collect()
    }

    #[test]
    fn a_node_is_gone_after_three_silences_in_a_row() {
        let mut pulses = Pulses::default();
        let round = [("a", Answer::Silence), ("b", Answer::Well)];
        assert_eq!(gone(&mut pulses, &round), [""; 0]);
        assert_eq!(gone(&mut pulses, &round), [""; 0]);
        assert_eq!(gone(&mut pulses, &round), ["a"]);
        assert_eq!(gone(&mut pulses, &round), ["a"]);
        assert_eq!(gone(&mut pulses, &[("a", Answer::Well)]), [""; 0], "it is back");
        assert_eq!(gone(&mut pulses, &round), [""; 0], "and begins anew");
        assert_eq!(gone(&mut pulses, &[]), [""; 0], "nobody asks it any more");
        assert!(pulses.0.is_empty());
    }

    #[test]
    fn a_node_whose_agent_starts_again_is_given_time() {
        let mut pulses = Pulses::default();
        for _ in 0..29 {
            assert_eq!(gone(&mut pulses, &[("a", Answer::Refused)]), [""; 0]);
        }
        assert_eq!(gone(&mut pulses, &[("a", Answer::Refused)]), ["a"]);
    }

    #[tokio::test]
    async fn only_an_agent_that_says_so_is_well() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, port) = ("127.0.0.1".parse().unwrap(), listener.local_addr().unwrap().port());
        let server = tokio::spawn(async move {
            for line in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 503 Busy\r\n\r\n"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(line.as_bytes()).await.unwrap();
            }
        });
        assert_eq!(ask(&[address], port).await, Answer::Well);
        assert_eq!(ask(&[address], port).await, Answer::Silence);
        server.await.unwrap();
        assert_eq!(ask(&[address], port).await, Answer::Refused, "nobody listens there any more");
        assert_eq!(ask(&[], port).await, Answer::Silence);
    }
}
