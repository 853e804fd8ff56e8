//! The edge on the kernel's own packet filter, in a network namespace.

use std::process::Command;

use underlay_desired::nft::{Chain, Hook, Rule, Ruleset};
use underlay_desired::{ObjectRef, Why};
use underlay_nft::Nft;
use underlay_testkit::{Netns, OutputExt};

fn rule(text: &str) -> Rule {
    Rule { text: text.to_owned(), why: Why::from_object(ObjectRef::cluster("Node", "one")) }
}

fn ruleset(texts: &[&str]) -> Ruleset {
    let hook = Hook { kind: "nat".to_owned(), point: "postrouting".to_owned(), priority: 100 };
    let rules = texts.iter().map(|text| rule(text)).collect();
    let base = Chain { hook: Some(hook), rules };
    let other = Chain { hook: None, rules: vec![rule("ip6 saddr fd00::/8 counter accept")] };
    Ruleset::from([("towards-pods".to_owned(), base), ("helper".to_owned(), other)])
}

fn nft(netns: &Netns) -> Nft {
    let path = format!("--net={}", netns.path().display());
    Nft { command: ["nsenter".to_owned(), path, "nft".to_owned()].into() }
}

fn show(netns: &Netns) -> String {
    netns.run(Command::new("nft").args(["list", "ruleset"])).ok()
}

#[tokio::test]
async fn the_table_follows_the_plan_and_nothing_else_is_touched() {
    let netns = Netns::new();
    let foreign = "table inet theirs {\n\tchain c {\n\t\tip saddr 10.0.0.1 drop\n\t}\n}";
    netns.run(Command::new("nft").arg(foreign)).ok();
    let before = show(&netns);
    let nft = nft(&netns);

    let first = ruleset(&["oifname \"mp0\" ip saddr 10.0.0.0/8 jump helper", "oifname != \"mp0\" return"]);
    assert_eq!(nft.sync(&first).await.unwrap(), 2);
    let text = show(&netns);
    assert!(text.contains("type nat hook postrouting priority srcnat; policy accept;"), "{text}");
    assert!(text.contains("ip saddr 10.0.0.0/8 jump helper"), "{text}");
    assert_eq!(nft.sync(&first).await.unwrap(), 0, "a second look finds nothing to do");

    let second = ruleset(&["oifname != \"mp0\" return"]);
    assert_eq!(nft.sync(&second).await.unwrap(), 1, "only the chain that differs");
    assert!(!show(&netns).contains("jump helper"));

    // What others do to our table does not last.
    netns.run(Command::new("nft").args(["add", "rule", "inet", "underlay", "towards-pods", "accept"])).ok();
    netns.run(Command::new("nft").args(["add", "chain", "inet", "underlay", "intruder"])).ok();
    assert_eq!(nft.sync(&second).await.unwrap(), 2);
    assert_eq!(nft.sync(&second).await.unwrap(), 0);

    let mut moved = second.clone();
    moved.get_mut("towards-pods").unwrap().hook.as_mut().unwrap().priority = 90;
    assert_eq!(nft.sync(&moved).await.unwrap(), 1);
    assert!(show(&netns).contains("priority srcnat - 10"), "{}", show(&netns));

    nft.sync(&Ruleset::new()).await.unwrap();
    assert_eq!(show(&netns), before, "all is as it was before us");
}

#[tokio::test]
async fn what_nft_refuses_changes_nothing_and_is_told() {
    let netns = Netns::new();
    let error = nft(&netns).sync(&ruleset(&["this is no rule"])).await.unwrap_err();
    assert!(error.to_string().contains("this is no rule"), "{error}");
    assert_eq!(show(&netns), "");
}
