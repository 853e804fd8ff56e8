//! Secrets that BGP sessions take their passwords from. Nothing else of a secret is kept, and nothing of it is shown.

use std::fmt;

use k8s_openapi::api::core;

/// The type that such a secret has.
const BASIC_AUTH: &str = "kubernetes.io/basic-auth";
/// Where in it the password is.
const PASSWORD: &str = "password";

/// A secret that somebody looked at: its password, or why there is none.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Result<String, String>);

impl Secret {
    /// Reads one.
    pub fn read(object: core::v1::Secret) -> Self {
        let kind = object.type_.unwrap_or_default();
        if kind != BASIC_AUTH {
            return Self(Err(format!("is of type {kind:?} and not {BASIC_AUTH}")));
        }
        let bytes = object.data.unwrap_or_default().remove(PASSWORD);
        let text = bytes.map(|bytes| String::from_utf8(bytes.0));
        Self(match text {
            Some(Ok(text)) => Ok(text),
            Some(Err(_)) => Err("has a password that is no text".to_owned()),
            None => Err(format!("has no key {PASSWORD}")),
        })
    }

    /// One that is not there.
    pub fn missing() -> Self {
        Self(Err("does not exist".to_owned()))
    }

    /// One that we may not look at.
    pub fn forbidden(reason: &str) -> Self {
        Self(Err(format!("cannot be read: {reason}")))
    }

    /// The password, or why there is none.
    pub fn password(&self) -> Result<&str, &str> {
        self.0.as_deref().map_err(String::as_str)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(_) => formatter.write_str("Secret(***)"),
            Err(reason) => write!(formatter, "Secret({reason})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(object: Value) -> Secret {
        Secret::read(serde_json::from_value(object).expect("a secret"))
    }

    #[test]
    fn only_a_password_of_the_right_type_is_taken() {
        let secret =
            read(json!({ "type": "kubernetes.io/basic-auth", "data": { "password": "aHVudGVyMg==" } }));
        assert_eq!(secret.password(), Ok("hunter2"));
        assert!(!format!("{secret:?}").contains("hunter2"));
        for (object, reason) in [
            (json!({ "data": { "password": "aHVudGVyMg==" } }), "is of type"),
            (json!({ "type": "kubernetes.io/basic-auth", "data": { "username": "eA==" } }), "has no key"),
            (json!({ "type": "kubernetes.io/basic-auth", "data": { "password": "/w==" } }), "is no text"),
        ] {
            let secret = read(object);
            assert!(secret.password().is_err_and(|why| why.contains(reason)), "{secret:?}");
        }
    }
}
