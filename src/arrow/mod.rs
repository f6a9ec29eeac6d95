//! Arrow arrays of texts, through the C data interface.
//!
//! The array is held while the call lasts, and not believed: the interface carries no sizes of buffers, so the caller
//! says them, and every range is compared with those before it is read. Nor is the memory: Arrow calls it
//! immutable, yet a numpy array or a bytearray may be behind it. Each byte is read once, at any alignment, into
//! memory that nothing else has; writing to the array meanwhile changes a text, and nothing else.

pub mod array;
pub mod interface;
pub mod span;
