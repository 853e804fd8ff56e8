//! Whether the ranges of addresses can be told apart.

use ipnet::IpNet;
use underlay_net::cidr::overlap;
use underlay_world::Settings;

use super::ConfigError;

/// Every range has its own addresses: a packet's destination must tell where it goes.
pub fn refuse(settings: &Settings) -> Result<(), ConfigError> {
    let mut ranges: Vec<(&str, IpNet)> =
        settings.cluster_subnets.iter().map(|range| ("cluster-subnets", range.net())).collect();
    ranges.extend(settings.service_subnets.iter().map(|net| ("service-cidrs", *net)));
    let infrastructure = [
        (["v4-join-subnet", "v6-join-subnet"], settings.join),
        (["v4-transit-subnet", "v6-transit-subnet"], settings.transit),
        (["v4-masquerade-subnet", "v6-masquerade-subnet"], settings.masquerade),
    ];
    for ([v4, v6], nets) in infrastructure {
        ranges.extend([(v4, nets.v4.into()), (v6, nets.v6.into())]);
    }
    for (place, (name, net)) in ranges.iter().enumerate() {
        if let Some((other_name, other)) = ranges[..place].iter().find(|(_, other)| overlap(net, other)) {
            let one = format!("{other_name} {other}");
            return Err(ConfigError::Overlap { one, other: format!("{name} {net}") });
        }
    }
    Ok(())
}
