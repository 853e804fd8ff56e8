//! What the runtime asks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::VERSION;
use crate::exchange::Request;
use crate::result::{Failure, code};

/// A request, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The version of the specification in which the answer is written.
    pub version: String,
    /// What is asked for.
    pub verb: Verb,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Give a container its interface.
    Add(Attachment),
    /// Take it away again.
    Del(Attachment),
    /// See whether it is still as it should be.
    Check(Attachment),
    /// Say whether pods can be given interfaces.
    Status,
    /// Remove everything but these.
    Gc(Vec<ValidAttachment>),
}

/// One interface of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The container: for Kubernetes, the pod's sandbox.
    pub container: String,
    /// Path of its network namespace; it may be gone, or not told, when the interface is taken away.
    pub namespace: Option<String>,
    /// Name of the interface in there.
    pub interface: String,
    /// The pod.
    pub pod: Pod,
}

/// A pod, as the kubelet tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity, if the runtime passes it on.
    pub uid: Option<String>,
}

/// An interface that the runtime still knows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ValidAttachment {
    /// The container.
    #[serde(rename = "containerID")]
    pub container: String,
    /// The interface.
    #[serde(rename = "ifname")]
    pub interface: String,
}

/// The parts of a network configuration that we read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NetConf {
    #[serde(rename = "cniVersion")]
    version: String,
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Valid,
}

/// What stays. A runtime without containers may say `null`; one that says nothing at all did not mean to say that.
#[derive(Debug, Default)]
enum Valid {
    #[default]
    Unsaid,
    Said(Vec<ValidAttachment>),
}

impl<'de> Deserialize<'de> for Valid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list: Option<Vec<ValidAttachment>> = Deserialize::deserialize(deserializer)?;
        Ok(Self::Said(list.unwrap_or_default()))
    }
}

impl Call {
    /// Understands a request, or says in the specification's codes what is wrong with it.
    pub fn read(request: &Request) -> Result<Self, Failure> {
        let environment = &request.environment;
        let config: NetConf = serde_json::from_str(&request.config).map_err(|error| {
            Failure::new(code::UNDECODABLE, format!("the network configuration: {error}"))
        })?;
        let version = if config.version.is_empty() { VERSION.to_owned() } else { config.version };
        if !crate::VERSIONS.contains(&version.as_str()) {
            let problem = format!("cniVersion {version} is none of {}", crate::VERSIONS.join(", "));
            return Err(Failure::new(code::INCOMPATIBLE_VERSION, problem));
        }
        let verb = match required(environment, "CNI_COMMAND")? {
            "ADD" => Verb::Add(Attachment::read(environment, true)?),
            "DEL" => Verb::Del(Attachment::read(environment, false)?),
            "CHECK" => Verb::Check(Attachment::read(environment, true)?),
            "STATUS" => Verb::Status,
            "GC" => match config.valid {
                Valid::Said(valid) => Verb::Gc(valid),
                Valid::Unsaid => {
                    // Everything would go.
                    let problem = "GC without cni.dev/valid-attachments, which says what stays";
                    return Err(Failure::new(code::INVALID_CONFIG, problem));
                }
            },
            other => {
                let problem =
                    format!("CNI_COMMAND {other:?} is none of ADD, DEL, CHECK, STATUS, GC, VERSION");
                return Err(Failure::new(code::BAD_ENVIRONMENT, problem));
            }
        };
        Ok(Self { version, verb })
    }
}

impl Attachment {
    fn read(environment: &BTreeMap<String, String>, needs_namespace: bool) -> Result<Self, Failure> {
        let namespace = match environment.get("CNI_NETNS").map(String::as_str) {
            Some("") | None if needs_namespace => {
                return Err(Failure::new(code::BAD_ENVIRONMENT, "CNI_NETNS is missing"));
            }
            Some("") | None => None,
            Some(path) => Some(path.to_owned()),
        };
        let interface = required(environment, "CNI_IFNAME")?;
        let legal =
            interface.len() <= 15 && !interface.contains(['/', ':', ' ']) && !matches!(interface, "." | "..");
        if !legal {
            let problem = format!("CNI_IFNAME {interface:?} is no name of a network interface");
            return Err(Failure::new(code::BAD_ENVIRONMENT, problem));
        }
        Ok(Self {
            container: required(environment, "CNI_CONTAINERID")?.to_owned(),
            namespace,
            interface: interface.to_owned(),
            pod: Pod::read(environment.get("CNI_ARGS").map_or("", String::as_str)),
        })
    }
}

impl Pod {
    fn read(arguments: &str) -> Self {
        let mut pod = Self::default();
        for (key, value) in arguments.split(';').filter_map(|pair| pair.split_once('=')) {
            match key {
                "K8S_POD_NAMESPACE" => value.clone_into(&mut pod.namespace),
                "K8S_POD_NAME" => value.clone_into(&mut pod.name),
                "K8S_POD_UID" if !value.is_empty() => pod.uid = Some(value.to_owned()),
                _ => {}
            }
        }
        pod
    }
}

fn required<'a>(environment: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str, Failure> {
    let value = environment.get(name).map_or("", String::as_str);
    if value.is_empty() {
        return Err(Failure::new(code::BAD_ENVIRONMENT, format!("{name} is missing")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(command: &str, config: &str) -> Request {
        let environment = [
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", "/run/netns/x"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=u1"),
        ];
        let environment = environment.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Request { environment, config: config.to_owned() }
    }

    #[test]
    fn an_addition_names_container_namespace_and_pod() {
        let call = Call::read(&request("ADD", r#"{"cniVersion":"1.0.0","name":"n","type":"t"}"#)).unwrap();
        assert_eq!(call.version, "1.0.0");
        let pod = Pod { namespace: "shop".to_owned(), name: "web".to_owned(), uid: Some("u1".to_owned()) };
        let Verb::Add(attachment) = call.verb else { panic!("{call:?}") };
        assert_eq!(attachment.pod, pod);
        assert_eq!(attachment.namespace.as_deref(), Some("/run/netns/x"));
    }

    #[test]
    fn mistakes_get_the_codes_of_the_specification() {
        let good = r#"{"cniVersion":"1.1.0"}"#;
        let code_of = |request: &Request| Call::read(request).unwrap_err().code;
        assert_eq!(code_of(&request("ADD", "{")), code::UNDECODABLE);
        assert_eq!(code_of(&request("ADD", r#"{"cniVersion":"9.0.0"}"#)), code::INCOMPATIBLE_VERSION);
        assert_eq!(code_of(&request("DANCE", good)), code::BAD_ENVIRONMENT);
        for missing in ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"] {
            let mut request = request("ADD", good);
            request.environment.remove(missing);
            let failure = Call::read(&request).unwrap_err();
            assert_eq!(failure.code, code::BAD_ENVIRONMENT);
            assert!(failure.msg.contains(missing), "{}", failure.msg);
        }
        // A namespace that is gone does not keep an interface from being taken away.
        let mut request = request("DEL", good);
        request.environment.remove("CNI_NETNS");
        assert!(Call::read(&request).is_ok());
    }

    #[test]
    fn collection_lists_what_stays() {
        let config =
            r#"{"cniVersion":"1.1.0","cni.dev/valid-attachments":[{"containerID":"c1","ifname":"eth0"}]}"#;
        let call = Call::read(&request("GC", config)).unwrap();
        let valid = ValidAttachment { container: "c1".to_owned(), interface: "eth0".to_owned() };
        assert_eq!(call.verb, Verb::Gc(vec![valid]));
        let none = Call::read(&request("GC", r#"{"cniVersion":"1.1.0","cni.dev/valid-attachments":null}"#));
        assert_eq!(none.unwrap().verb, Verb::Gc(vec![]));
        let nothing_said = Call::read(&request("GC", r#"{"cniVersion":"1.1.0"}"#));
        assert_eq!(nothing_said.unwrap_err().code, code::INVALID_CONFIG);
    }

    proptest! {
        #[test]
        fn nothing_the_runtime_says_makes_it_panic(command in ".{0,8}", config in ".{0,64}", args in ".{0,64}") {
            let mut request = request(&command, &config);
            request.environment.insert("CNI_ARGS".to_owned(), args);
            let _ = Call::read(&request);
        }
    }
}
