//! Enums of words that may grow: a word of a later version is kept as it is instead of refused, because refusing it
//! would lose the whole object, and with it the watch.

/// Makes an enum whose variants are words, with `Other` for words that this version does not know. A variant may have
/// further spellings, which are read but not written. The schema lists every spelling.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$note:meta])* $variant:ident = $word:literal $(| $spelling:literal)*,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$note])* $variant,)+
            /// A word that this version does not know, as it was written.
            Other(String),
        }

        impl $name {
            /// The word itself.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word $(| $spelling)* => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(String::deserialize(deserializer)?.as_str()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word $(, $spelling)*),+] })
            }
        }
    };
}

pub(crate) use words;
