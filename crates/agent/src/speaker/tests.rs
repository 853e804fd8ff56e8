//! The speaker between a real API server and real FRR, with a router at the other end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use prometheus_client::registry::Registry;
use tracing_subscriber::fmt::MakeWriter;
use underlay_api::FRRConfiguration;
use underlay_plan::node::frr::{Host, merge};
use underlay_runtime::client::connect;
use underlay_runtime::feed;
use underlay_runtime::turn::Feeds;
use underlay_testkit::{ApiServer, FrrHost, OutputExt, Scratch, wait_for};
use underlay_world::{Kind, World};

use super::*;

/// No output may have these.
const HIDDEN: [&str; 4] = ["of-a-secret", "in-the-open", "in-a-text", "mistyped"];

const TOR: &str = "\
router bgp 64513
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 neighbor 10.0.0.1 remote-as 64512
 neighbor 10.0.0.1 timers connect 1
 neighbor 10.0.0.1 password of-a-secret
";

/// One neighbour takes its password from a secret, one has it in the open, one in a text. The text of another makes no
/// sense.
const OBJECTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: frr-k8s-system }
---
apiVersion: v1
kind: Secret
type: kubernetes.io/basic-auth
metadata: { name: tor, namespace: frr-k8s-system }
stringData: { password: of-a-secret }
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: { name: peers, namespace: frr-k8s-system }
spec:
  bgp:
    routers:
    - asn: 64512
      prefixes: [10.244.1.0/24]
      neighbors:
      - { address: 10.0.0.2, asn: 64513, connectTime: 1s, passwordSecret: { name: tor },
          toAdvertise: { allowed: { mode: all } } }
      - { address: 10.0.0.8, asn: 64513, password: in-the-open }
  raw: { rawConfig: "router bgp 64512\n neighbor 10.0.0.8 password in-a-text\n" }
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: { name: garbage, namespace: frr-k8s-system }
spec:
  bgp: { routers: [{ asn: 64512, prefixes: [10.244.66.0/24] }] }
  raw: { rawConfig: "router bgp 64512\n neighbor 10.0.0.2 pasword mistyped\n" }
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: { name: lost, namespace: frr-k8s-system }
spec:
  bgp:
    routers:
    - { asn: 64512, neighbors: [{ address: 10.0.0.7, asn: 1, passwordSecret: { name: nowhere } }] }
"#;

/// A log that a test can read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn apply_text(server: &ApiServer, text: &str) {
    let scratch = Scratch::new("objects");
    let file = scratch.join("objects.yaml");
    fs::write(&file, text).expect("writing objects");
    server.kubectl(&["apply", "--validate=false", "-f", &file.to_string_lossy()]).ok();
}

/// Does what the agent does between the API server and the speaker.
async fn follow(client: Client, speaker: Speaker) {
    let mut feeds = Feeds::new()
        .with(FRRConfiguration::NAME, feed::everything::<FRRConfiguration>(&client))
        .with(Secret::NAME, feed::secrets(&client, speaker.secrets()));
    let mut world = World::default();
    loop {
        feeds.next(&mut world).await;
        if feeds.is_ready() {
            let configurations = world.frr_configurations.values().map(AsRef::as_ref);
            let host = Host { labels: &BTreeMap::new(), addresses: &[], has_vrf: true };
            speaker.publish(merge(host, configurations, &world.secrets));
        }
    }
}

fn edge(host: &FrrHost) -> Frr {
    Frr { sockets: host.path("/run/frr"), vtysh: host.vtysh_command(), file: host.path("/etc/frr/frr.conf") }
}

/// Waits until what kubectl prints passes.
fn wait_until(server: &ApiServer, what: &str, arguments: &[&str], good: impl Fn(&str) -> bool) -> String {
    let mut last = String::new();
    wait_for(what, Duration::from_secs(20), || {
        last = server.kubectl(arguments).ok();
        if good(&last) { Ok(()) } else { Err(last.clone()) }
    });
    last
}

const STATES: [&str; 5] = ["get", "bgpsessionstates", "--all-namespaces", "--output", "json"];

#[tokio::test(flavor = "multi_thread")]
async fn one_users_mistake_is_named_sessions_are_told_and_no_password_is_seen() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).expect("nobody else reads logs here");
    let server = ApiServer::shared();
    let definitions: Vec<_> = underlay_api::crds::all()
        .iter()
        .map(|definition| serde_json::to_string(definition).expect("a definition"))
        .collect();
    apply_text(server, &definitions.join("\n---\n"));
    server.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).ok();
    let (node, tor) = (FrrHost::start("node", ""), FrrHost::start("tor", TOR));
    node.connect(&tor);
    let client = connect(Some(&server.kubeconfig())).await.expect("a client");
    let mut registry = Registry::default();
    let writer = Writer::register("test", &mut registry);
    let place = Place { node: "n1", namespace: "frr-k8s-system", api: client.clone(), writer };
    let metrics = EdgeMetrics::register(&mut registry);
    let theirs = Place { writer: place.writer.clone(), api: client.clone(), ..place };
    let before = (node.configuration(), fs::read(node.path("/etc/frr/frr.conf")).expect("FRR's file"));
    assert!(Speaker::start(Who::FrrK8s, theirs, edge(&node), &metrics).is_none());
    assert_eq!((node.configuration(), fs::read(node.path("/etc/frr/frr.conf")).expect("FRR's file")), before);
    let speaker = Speaker::start(Who::Agent, place, edge(&node), &metrics).expect("a speaker of our own");
    let following = tokio::spawn(follow(client, speaker));
    apply_text(server, OBJECTS);

    let established = |text: &str| text.contains("\"Established\"");
    wait_until(server, "a session with a password of a secret", &STATES, established);
    tor.wait_until_shows("show bgp ipv4 unicast 10.244.1.0/24 json", "\"valid\":true");
    let node_state = ["get", "frrnodestate", "n1", "--output", "json"];
    let told = wait_until(server, "all objects that are left out", &node_state, |text| {
        text.contains("frr-k8s-system/garbage: spec.raw.rawConfig:")
            && text.contains("frr-k8s-system/lost:")
            && text.contains("secret frr-k8s-system/nowhere: does not exist")
            && text.contains("\"lastReloadResult\": \"success\"")
    });
    assert!(!node.configuration().contains("10.244.66.0"), "an object takes part as a whole or not at all");
    assert!(node.configuration().contains("in-a-text"), "the user's word counts more");

    let up = node.established("10.0.0.2");
    server.kubectl(&["delete", "frrconfiguration", "garbage", "lost", "--namespace=frr-k8s-system"]).ok();
    let success = |text: &str| text.contains("\"lastConversionResult\": \"success\"");
    let better = wait_until(server, "nothing left out", &node_state, success);
    assert_eq!(node.established("10.0.0.2"), up, "others do not notice");

    tor.kill_bgpd();
    let states = wait_until(server, "a session that ended", &STATES, |text| !established(text));
    following.abort();
    for (path, mode) in [("/etc/frr/frr.conf", 0o640), ("/etc/frr/underlay-raw.json", 0o600)] {
        let file = fs::metadata(node.path(path)).expect("a file");
        assert_eq!(file.permissions().mode() & 0o777, mode, "{path}");
    }
    let log = log.text();
    assert!(log.contains("changing FRR") && log.contains("left out"), "{log}");
    for hidden in HIDDEN {
        for output in [&log, &told, &better, &states] {
            assert!(!output.contains(hidden), "{hidden} is in {output}");
        }
    }
}
