//! The way to the API server.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio_rustls::rustls::crypto::ring;

/// There is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file named cannot be used.
    #[error("kubeconfig {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// Why.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Nothing tells where the API server is.
    #[error("no API server: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account")]
    Unknown(#[source] Box<kube::config::InferConfigError>),
    /// What tells it makes no client.
    #[error("the connection to the API server cannot be set up")]
    Unusable(#[source] Box<kube::Error>),
}

/// A client: from a kubeconfig file if one is named, else from the environment, else from the pod's service account.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ClientError> {
    // Somebody in this process may have chosen before; one choice is as good as the other.
    let _ = ring::default_provider().install_default();
    let config = match kubeconfig {
        Some(path) => from_file(path).await.map_err(|source| ClientError::Kubeconfig {
            path: path.display().to_string(),
            source: Box::new(source),
        })?,
        None => Config::infer().await.map_err(|error| ClientError::Unknown(Box::new(error)))?,
    };
    Client::try_from(config).map_err(|error| ClientError::Unusable(Box::new(error)))
}

async fn from_file(path: &Path) -> Result<Config, kube::config::KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_missing_file_is_named() {
        let error = connect(Some(Path::new("/nowhere/config"))).await.err().unwrap().to_string();
        assert!(error.starts_with("kubeconfig /nowhere/config: "), "{error}");
    }
}
