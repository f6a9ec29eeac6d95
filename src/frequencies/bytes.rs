#![forbid(unsafe_code)]
//! The bytes of a table; docs/formats/scheme.md describes them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::frequencies::sketch::ROWS;
use crate::frequencies::{Frequencies, MOST_FEATURES};
use crate::system::memory;

const MAGIC: &[u8; 8] = b"NDFREQ01";

impl Frequencies {
    /// The bytes of docs/formats/scheme.md, the same for the same counts.
    pub fn to_bytes(&self) -> Vec<u8> {
        let entries = self.entries();
        let count = self.sketch.as_ref().map_or(entries.len(), Vec::len);
        let mut out = memory::room_for(64 + 12 * count);
        out.extend_from_slice(MAGIC);
        for number in [u64::from(self.sketch.is_some()), self.documents(), self.max_features as u64, count as u64] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        match &self.sketch {
            Some(cells) => {
                out.extend(cells.iter().flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes()));
            }
            None => {
                out.extend(entries.iter().flat_map(|entry| entry.0.to_le_bytes()));
                out.extend(entries.iter().flat_map(|entry| entry.1.to_le_bytes()));
            }
        }
        let check = xxhash_rust::xxh3::xxh3_128(&out);
        out.extend_from_slice(&check.to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Frequencies, String> {
        const HEAD: usize = 40;
        let damaged = |what: &str| format!("the frequency table is damaged: {what}");
        if bytes.len() < HEAD + 16 || &bytes[..8] != MAGIC {
            return Err(damaged("it does not begin as one"));
        }
        let (body, check) = bytes.split_at(bytes.len() - 16);
        if xxhash_rust::xxh3::xxh3_128(body).to_le_bytes() != *check {
            return Err(damaged("its checksum does not match"));
        }
        let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap_or_default());
        let (sketched, documents, max_features, count) = (word(8), word(16), word(24), word(32));
        let data = &body[HEAD..];
        let size = if sketched == 1 { 4 } else { 12 };
        if max_features > MOST_FEATURES {
            return Err(damaged("it speaks of more features than there can be"));
        }
        if sketched > 1 || count.checked_mul(size) != Some(data.len() as u64) {
            return Err(damaged("its length does not fit its count"));
        }
        if sketched == 0 && count > max_features {
            return Err(damaged("it has more features than it may have"));
        }
        let count = count as usize;
        let number = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap_or_default());
        let mut table = Frequencies::new(max_features as usize);
        if sketched == 1 {
            if count != ROWS * table.row() {
                return Err(damaged("its sketch has the wrong size"));
            }
            table.shards.clear();
            table.sketch = Some(memory::gathered((0..count).map(|at| AtomicU32::new(number(at * 4)))));
        } else {
            let mut last = 0; // marks free places, and so is not a feature
            for at in 0..count {
                let key = u64::from_le_bytes(data[at * 8..at * 8 + 8].try_into().unwrap_or_default());
                if key <= last {
                    return Err(damaged("its features are not in ascending order"));
                }
                last = key;
                table.add_count(key, number(count * 8 + at * 4));
            }
        }
        table.documents = AtomicU64::new(documents);
        Ok(table)
    }
}
