//! The texts of the ecosystem.

use super::*;

#[test]
fn the_default_networks_text_is_its_configuration() {
    assert_eq!(NetConf::parse(NetConf::DEFAULT_NETWORK), Ok(NetConf::default_network()));
    assert_eq!(NetConf::default_network().render(), NetConf::DEFAULT_NETWORK);
}
