#![forbid(unsafe_code)]
//! Why the core did not do what it should, in words for the user.

use std::io;

/// The kind says which error of Python's it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Type(String),
    Value(String),
    Limit(String),
    Memory(String),
    /// A file is not the one that was checked.
    Changed(String),
    Damaged(String),
    /// What the system says: its number, if it gave one, its words, and the file.
    System(Option<i32>, String, String),
    /// Nothing that was given is wrong: an earlier error left it so, or the work was stopped.
    Runtime(String),
}

impl Fault {
    pub fn value(what: impl Into<String>) -> Fault {
        Fault::Value(what.into())
    }

    /// What the system says of a file.
    pub fn of_file(error: &io::Error, path: impl ToString) -> Fault {
        let text = error.to_string();
        let words = text.split(" (os error").next().unwrap_or_default();
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::OutOfMemory, _) => Fault::Memory(format!("not enough memory for '{}'", path.to_string())),
            (_, Some(number)) => Fault::System(Some(number), words.to_owned(), path.to_string()),
            (_, None) => Fault::System(None, text, path.to_string()),
        }
    }
}

/// A fault, unless it is so.
pub fn require(is_so: bool, otherwise: &str) -> Result<(), Fault> {
    if is_so { Ok(()) } else { Err(Fault::value(otherwise)) }
}
