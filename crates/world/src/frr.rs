//! What the speaker needs besides its configurations.

use k8s_openapi::api::core::v1::Secret;

/// The password of a BGP session. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Type of the secrets that hold one.
    pub const SECRET_TYPE: &'static str = "kubernetes.io/basic-auth";

    /// The password in a secret, if it has one.
    pub fn read(secret: &Secret) -> Option<Self> {
        let bytes = secret.data.as_ref()?.get("password")?;
        String::from_utf8(bytes.0.clone()).ok().map(Self)
    }

    /// The password itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Password(hidden)")
    }
}
