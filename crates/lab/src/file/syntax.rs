//! The parser's errors in the words of a lab file's author: what belongs there, not how the parser is built.

use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::FileError;

/// What is wrong with a text that is no lab file at all, where, and what to write.
pub(super) fn describe(file: &str, error: &Error) -> FileError {
    let line = error.location().map_or(0, |location| location.line());
    FileError { file: file.to_owned(), line, message: message(error) }
}

fn message(error: &Error) -> String {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => message(error),
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("there is no field `{field}` here: use one of {}", expected.join(", "))
        }
        Error::SerdeMissingField { field, .. } => format!("the field `{field}` is missing here: add it"),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is here twice: keep one"),
        Error::InvalidScalar { ty: "boolean", .. } => {
            "this is neither yes nor no: write true or false".to_owned()
        }
        Error::InvalidScalar { .. } => {
            format!("this is not a number that fits here: write a whole one from 0 to {}", u32::MAX)
        }
        Error::Message { msg, .. } if msg.starts_with("invalid IP address") => {
            "this is not an address: write it like 172.30.0.1 or \"fd00:30::1\"".to_owned()
        }
        Error::Unexpected { expected: "sequence start", .. } => {
            "a list belongs here: write a line that begins with `- ` for every part, or [part, part]"
                .to_owned()
        }
        Error::Unexpected { expected: "mapping start", .. } => {
            "fields belong here: write them as `field: value`".to_owned()
        }
        // What the parser says of broken YAML names the character; its further lines repeat the file.
        other => UserMessageFormatter.format_message(other).lines().next().unwrap_or_default().to_owned(),
    }
}
