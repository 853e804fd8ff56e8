//! What people and probes look at: metrics, health, readiness and the plan.
//!
//! In: a registry and what tells readiness, plan and report. Out: `/metrics`, `/healthz`, `/readyz`, `/debug/desired`
//! and `/debug/report` on one address, plain HTTP: it is meant for the node itself, its monitoring, and people who come
//! through the API server. Nothing secret is told here.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::net::TcpListener;
use tracing::info;

/// Tells whether the daemon does its work; the error says what it waits for.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
/// Tells what should be, as JSON.
pub type Desired = Arc<dyn Fn() -> Value + Send + Sync>;
/// Tells how things are, as JSON. What is asked for comes as the query of the address.
pub type Report = Arc<dyn Fn(String) -> BoxFuture<'static, Value> + Send + Sync>;

/// What there is to look at.
#[derive(Clone)]
pub struct Admin {
    /// Metrics.
    pub registry: Arc<Registry>,
    /// Readiness.
    pub ready: Readiness,
    /// The plan.
    pub desired: Desired,
    /// How things are, where a daemon has something to report.
    pub report: Option<Report>,
}

/// Serves on an address for as long as the process lives, and returns the address with its real port. An empty address
/// is nothing to serve.
pub async fn start(address: &str, admin: Admin) -> io::Result<Option<SocketAddr>> {
    if address.is_empty() {
        return Ok(None);
    }
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("--metrics-bind-address {address:?}: {error}"))
    };
    let listener = bind(address).await.map_err(named)?;
    let local = listener.local_addr()?;
    info!(address = %local, "serving metrics and probes");
    tokio::spawn(axum::serve(listener, router(admin)).into_future());
    Ok(Some(local))
}

/// A kernel without IPv6 has no `[::]`; all its addresses are IPv4 then.
async fn bind(address: &str) -> io::Result<TcpListener> {
    match (TcpListener::bind(address).await, address.strip_prefix("[::]:")) {
        (Err(error), Some(port)) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind(format!("0.0.0.0:{port}")).await
        }
        (result, _) => result,
    }
}

fn router(admin: Admin) -> Router {
    let Admin { registry, ready, desired, report } = admin;
    let router = Router::new()
        .route("/metrics", get(move || std::future::ready(metrics(&registry))))
        .route("/healthz", get(|| std::future::ready("ok\n")))
        .route("/readyz", get(move || std::future::ready(readiness(&ready()))))
        .route("/debug/desired", get(move || std::future::ready(json(&desired()))));
    let Some(report) = report else { return router };
    let answer = move |asked: Uri| {
        let report = report(asked.query().unwrap_or_default().to_owned());
        async move { json(&report.await) }
    };
    router.route("/debug/report", get(answer))
}

fn metrics(registry: &Registry) -> Response {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn readiness(ready: &Result<(), String>) -> Response {
    match ready {
        Ok(()) => "ok\n".into_response(),
        Err(waiting) => (StatusCode::SERVICE_UNAVAILABLE, format!("{waiting}\n")).into_response(),
    }
}

fn json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], format!("{value:#}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn look(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn everything_can_be_looked_at() {
        let mut registry = Registry::default();
        let counter: Counter = Counter::default();
        registry.register("underlay_turns", "Turns", counter.clone());
        counter.inc();
        let admin = Admin {
            registry: Arc::new(registry),
            ready: Arc::new(|| Err("waiting for Node".to_owned())),
            desired: Arc::new(|| json!({ "rows": 1 })),
            report: Some(Arc::new(|asked| Box::pin(async move { json!({ "asked": asked }) }))),
        };
        let address = start("127.0.0.1:0", admin.clone()).await.unwrap().unwrap();
        assert!(look(address, "/metrics").await.contains("underlay_turns_total 1"));
        assert!(look(address, "/healthz").await.starts_with("HTTP/1.1 200 "));
        let ready = look(address, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 503 ") && ready.ends_with("waiting for Node\n"), "{ready}");
        assert!(look(address, "/debug/desired").await.contains("\"rows\": 1"));
        let report = look(address, "/debug/report?pod=a/b&to=fd00::/8").await;
        assert!(report.contains(r#""asked": "pod=a/b&to=fd00::/8""#), "{report}");
        assert_eq!(start("", admin.clone()).await.unwrap(), None);
        let taken = start(&address.to_string(), admin).await.unwrap_err().to_string();
        assert!(taken.contains("--metrics-bind-address"), "{taken}");
    }
}
