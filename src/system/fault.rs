#![forbid(unsafe_code)]
//! What is wrong with what the core was given, in words for the user.

/// The kind says which error of Python's it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Type(String),
    Value(String),
    Limit(String),
}

impl Fault {
    pub fn value(what: impl Into<String>) -> Fault {
        Fault::Value(what.into())
    }
}

/// A fault, unless it is so.
pub fn require(is_so: bool, otherwise: &str) -> Result<(), Fault> {
    if is_so { Ok(()) } else { Err(Fault::value(otherwise)) }
}
