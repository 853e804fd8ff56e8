//! Every actor comes to the API server as itself, with its own rights and no more.

use underlay_testkit::{LabUnderTest, OutputExt};

fn can(lab: &LabUnderTest, actor: &str, question: &[&str]) -> bool {
    let output = lab.kubectl_as(actor, &[&["auth", "can-i"], question].concat());
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answer.starts_with("yes") || answer.starts_with("no"), "{actor} {question:?}: {output:?}");
    answer.starts_with("yes")
}

pub fn actors(lab: &LabUnderTest) {
    let whoami = ["auth", "whoami", "--output=jsonpath={.status.userInfo.username}"];
    for (actor, user) in [
        ("admin", "lab-admin"),
        ("cluster", "underlay:cluster"),
        ("agent-worker1", "underlay:agent:worker1"),
        ("agent-control", "underlay:agent:control"),
        ("kubelet-worker2", "system:node:worker2"),
    ] {
        assert_eq!(lab.kubectl_as(actor, &whoami).ok(), user);
        assert_eq!(can(lab, actor, &["delete", "nodes"]), actor == "admin", "{actor}");
        assert_eq!(can(lab, actor, &["get", "secrets", "--all-namespaces"]), actor == "admin", "{actor}");
    }
    // Passwords of BGP sessions, and no other secrets.
    assert!(can(lab, "agent-worker1", &["watch", "secrets", "--namespace=frr-k8s-system"]));
    assert!(!can(lab, "agent-worker1", &["get", "secrets", "--namespace=kube-system"]));
    assert!(can(lab, "agent-worker1", &["watch", "pods", "--all-namespaces"]));
    assert!(can(lab, "agent-worker1", &["patch", "nodes", "--subresource=status"]));
    assert!(!can(lab, "agent-worker1", &["update", "nodes"]));
    assert!(can(lab, "cluster", &["patch", "nodes"]));
    // Not only by its own word: the deed is refused.
    let error = lab.kubectl_as("agent-worker1", &["delete", "node", "worker2"]).refused();
    assert!(error.contains("Forbidden") && error.contains("underlay:agent:worker1"), "{error}");
}
