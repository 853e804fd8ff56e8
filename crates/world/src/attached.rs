//! Pods in networks other than the default one, for those who ask whether such a network is still in use. Nothing else
//! of a pod is kept: there are very many.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, PodNetworks};

/// What a living pod is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// Attachments, as `<namespace>/<name>`; never none.
    To(Vec<String>),
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
        let names: Vec<String> = networks.0.into_keys().filter(|name| name != DEFAULT_NETWORK).collect();
        (!names.is_empty()).then_some(Self::To(names))
    }

    /// The attachments, as `<namespace>/<name>`: a second one to the same network has a number behind it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: &[String] = match self {
            Self::To(names) => names,
            Self::Unreadable => &[],
        };
        names.iter().map(|name| match name.match_indices('/').nth(1) {
            Some((second, _)) => &name[..second],
            None => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: Option<&str>) -> Option<Attached> {
        let annotations = text.map(|text| [(PodNetworks::KEY.to_owned(), text.to_owned())].into());
        Attached::read(&ObjectMeta { annotations, ..ObjectMeta::default() })
    }

    #[test]
    fn only_what_matters_is_kept() {
        let of = |name: &str| {
            format!(r#""{name}":{{"ip_addresses":["10.0.0.5/24"],"mac_address":"0a:58:0a:00:00:05"}}"#)
        };
        assert_eq!(read(None), None);
        assert_eq!(read(Some(&format!("{{{}}}", of("default")))), None);
        assert_eq!(read(Some("?")), Some(Attached::Unreadable));
        let two = read(Some(&format!("{{{},{}}}", of("default"), of("red/blue/1")))).unwrap();
        assert_eq!(two.names().collect::<Vec<_>>(), ["red/blue"]);
    }
}
