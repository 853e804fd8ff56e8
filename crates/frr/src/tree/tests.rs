//! Texts of FRR and of users, read and written again.

use proptest::prelude::*;

use super::*;

/// As FRR 10.3 prints it, shortened.
const PRINTED: &str = "\
frr version 10.3
frr defaults datacenter
hostname n1
ip route 192.0.2.0/24 blackhole
vrf red
 ip route 198.51.100.0/24 blackhole
exit-vrf
ip prefix-list foreign seq 5 permit 1.2.3.0/24
route-map foreign permit 10
 match ip address prefix-list foreign
exit
router bgp 64512
 bgp router-id 10.0.0.1
 neighbor 10.0.0.2 remote-as 64513
 address-family ipv4 unicast
  network 10.244.1.0/24
  neighbor 10.0.0.2 activate
 exit-address-family
exit
router bgp 64512 vrf red
exit
bfd
 profile fast
  transmit-interval 100
 exit
 profile slow
 exit
exit
";

#[test]
fn what_frr_prints_is_read_and_written_again() {
    assert_eq!(parse(PRINTED).text(), PRINTED);
}

#[test]
fn comments_and_ends_are_no_lines() {
    let text = PRINTED.replace("exit\n", "exit\n!\n") + "!\nend\n";
    assert_eq!(parse(&text), parse(PRINTED));
}

#[test]
fn a_text_without_indentation_means_the_same() {
    let flat: String = PRINTED.lines().flat_map(|line| [line.trim_start(), "\n"]).collect();
    assert_eq!(parse(&flat), parse(PRINTED));
}

#[test]
fn a_text_without_exits_means_the_same() {
    let open: String =
        PRINTED.lines().filter(|line| line.trim() != "exit").flat_map(|line| [line, "\n"]).collect();
    assert_eq!(parse(&open), parse(PRINTED));
}

#[test]
fn contexts_that_we_do_not_know_keep_their_lines() {
    let block = parse("brand new\n inside\n deeper\nhostname n1\n");
    assert_eq!(
        block.leaves(),
        [vec!["brand new", "inside"], vec!["brand new", "deeper"], vec!["hostname n1"]]
    );
}

#[test]
fn passwords_are_not_shown() {
    let block = parse("router bgp 1\n neighbor 10.0.0.2 password hunter2\n");
    assert!(format!("{block:?}").contains("neighbor 10.0.0.2 password ***"));
    assert!(!format!("{block:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn no_text_makes_us_panic(text in "(?s)[a-z !#\\n\\t]{0,200}|.{0,100}") {
        let _ = parse(&text).text();
    }

    /// Words of FRR in any order and indentation: what was read once is read the same again.
    #[test]
    fn reading_settles(
        lines in prop::collection::vec(
            (0..3_usize, prop::sample::select(vec![
                "router bgp 1", "router bgp 1 vrf red", "address-family ipv4 unicast", "exit", "exit-address-family",
                "network 10.0.0.0/8", "bfd", "profile fast", "peer 10.0.0.1", "route-map a permit 1",
                "match ip address prefix-list x", "ip prefix-list x seq 5 permit any", "vrf red", "end", "!",
                "hostname x",
            ])),
            0..20,
        ),
    ) {
        let text: String =
            lines.iter().flat_map(|(indent, line)| [[" ", "  ", ""][*indent], line, "\n"]).collect();
        let once = parse(&text);
        prop_assert_eq!(&parse(&once.text()), &once);
    }
}
