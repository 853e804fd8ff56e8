//! The pod that tests talk with: in, where it is to run; out, its manifest.

use crate::cluster::image;

/// A web server as a pod of the node's own name, ready when it answers.
pub fn manifest(namespace: &str, node: &str, port: u16) -> String {
    let image = image();
    format!(
        r"
apiVersion: v1
kind: Pod
metadata: {{ name: {node}, namespace: {namespace}, labels: {{ app: web }} }}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 0
  containers:
    - name: web
      image: {image}
      imagePullPolicy: Never
      args: [netexec, --http-port={port}]
      readinessProbe: {{ httpGet: {{ path: /healthz, port: {port} }}, periodSeconds: 1 }}
"
    )
}
