//! Errors as people read them.

/// What the API server said, or why it said nothing.
pub fn text(error: &kube::Error) -> String {
    match error {
        // Its own text repeats the whole answer.
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => text_with_sources(error),
    }
}

/// An error and all it came from: the outermost text alone often says only that something failed.
pub fn text_with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn an_answer_is_told_once_and_a_chain_to_its_end() {
        let answer = kube::Error::Api(Status::failure("nodes \"x\" not found", "NotFound").boxed());
        assert_eq!(text(&answer), "nodes \"x\" not found");
        let chain = kube::Error::Service(Box::new(std::io::Error::other("refused")));
        assert!(text(&chain).ends_with("refused"), "{}", text(&chain));
    }
}
