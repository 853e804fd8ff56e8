//! Pods in networks other than the default one, for those who ask whether such a network is still in use, and where a
//! pod is in it. Nothing else of a pod is kept: there are very many.

use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, PodNetworks};
use underlay_net::Family;

/// What a living pod is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// To these.
    To {
        /// The pod's identity.
        uid: String,
        /// Attachments, as `<namespace>/<name>`, with the pod's addresses there; never none.
        networks: Vec<(String, Vec<IpAddr>)>,
    },
    /// It is recorded in a way that cannot be read: it may be anything in its namespace.
    Unreadable,
}

impl Attached {
    /// Reads the record of a pod; nothing for one that is in the default network alone.
    pub fn read(metadata: &ObjectMeta) -> Option<Self> {
        let networks = match PodNetworks::of(metadata) {
            Ok(networks) => networks?,
            Err(_) => return Some(Self::Unreadable),
        };
        let others = networks.0.into_iter().filter(|(name, _)| name != DEFAULT_NETWORK);
        let networks: Vec<(String, Vec<IpAddr>)> =
            others.map(|(name, part)| (name, part.addresses.iter().map(IpNet::addr).collect())).collect();
        let uid = metadata.uid.clone().unwrap_or_default();
        (!networks.is_empty()).then_some(Self::To { uid, networks })
    }

    /// The attachments, as `<namespace>/<name>`: a second one to the same network has a number behind it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.networks().iter().map(|(name, _)| match name.match_indices('/').nth(1) {
            Some((second, _)) => &name[..second],
            None => name,
        })
    }

    /// Where the pod is by its first attachment of this name.
    pub fn address(&self, attachment: &str, family: Family) -> Option<IpAddr> {
        let (_, addresses) = self.networks().iter().find(|(name, _)| name == attachment)?;
        addresses.iter().copied().find(|address| Family::of(*address) == family)
    }

    /// Whether it is the pod with this identity; who does not say which means any.
    pub fn is(&self, wanted: Option<&str>) -> bool {
        match (self, wanted) {
            (Self::To { uid, .. }, Some(wanted)) => uid == wanted,
            _ => true,
        }
    }

    fn networks(&self) -> &[(String, Vec<IpAddr>)] {
        match self {
            Self::To { networks, .. } => networks,
            Self::Unreadable => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: Option<&str>) -> Option<Attached> {
        let annotations = text.map(|text| [(PodNetworks::KEY.to_owned(), text.to_owned())].into());
        Attached::read(&ObjectMeta { annotations, uid: Some("u".to_owned()), ..ObjectMeta::default() })
    }

    #[test]
    fn only_what_matters_is_kept() {
        let of = |name: &str| {
            let addresses = r#"["10.0.0.5/24","fd00::5/64"]"#;
            format!(r#""{name}":{{"ip_addresses":{addresses},"mac_address":"0a:58:0a:00:00:05"}}"#)
        };
        assert_eq!(read(None), None);
        assert_eq!(read(Some(&format!("{{{}}}", of("default")))), None);
        assert_eq!(read(Some("?")), Some(Attached::Unreadable));
        let two = read(Some(&format!("{{{},{}}}", of("default"), of("red/blue/1")))).unwrap();
        assert_eq!(two.names().collect::<Vec<_>>(), ["red/blue"]);
        assert_eq!(two.address("red/blue", Family::V4), None, "that is another port of the pod");
        let one = read(Some(&format!("{{{}}}", of("red/blue")))).unwrap();
        assert_eq!(one.address("red/blue", Family::V4), Some("10.0.0.5".parse().unwrap()));
        assert_eq!(one.address("red/blue", Family::V6), Some("fd00::5".parse().unwrap()));
        assert!(one.is(Some("u")) && one.is(None) && !one.is(Some("v")));
    }
}
