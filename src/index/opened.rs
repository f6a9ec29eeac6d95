//! An index out of a file, mapped or read into memory, and whether that file is still the one that was checked.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use memmap2::{Mmap, MmapMut};

use crate::index::Index;
use crate::index::any::{AnyIndex, Entries};
use crate::index::file::{self, Damage, Stamp};
use crate::index::ids::Named;
use crate::system::fault::Fault;

/// An index, with what its file says beside.
pub struct Opened {
    pub index: AnyIndex,
    pub digest: String,
    pub stamp: Stamp,
    /// Only of a mapped file.
    pub watch: Option<Watch>,
}

/// Why a file gave no index.
#[derive(Debug)]
pub enum Refused {
    Io(io::Error),
    /// It was changed while it was read.
    Changed,
    Damaged(String),
}

impl Refused {
    /// What is said of it where the file is at *path*.
    pub fn at(self, path: &Path) -> Fault {
        let name = path.display();
        match self {
            Refused::Changed => Fault::Changed(format!("'{name}' was changed while it was read; load it again")),
            Refused::Damaged(what) => Fault::Damaged(format!("{name}: {what}")),
            Refused::Io(error) => Fault::of_file(&error, name),
        }
    }
}

impl From<Damage> for Refused {
    fn from(damage: Damage) -> Refused {
        Refused::Damaged(damage.0)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error)
    }
}

/// The file under a map: what it was when it was checked.
pub struct Watch {
    pub path: PathBuf,
    file: File,
    size: u64,
    modified: Option<SystemTime>,
    map: Weak<Mmap>,
    changed: AtomicBool,
}

impl Watch {
    /// Whether something of the file is, or was, used that is not what was checked.
    pub fn is_needed(&self) -> bool {
        self.map.strong_count() > 0 || self.changed.load(Ordering::Relaxed)
    }

    /// Whether the file is what was checked; once it was not, it never is again.
    pub fn is_sound(&self) -> bool {
        let sound = is_same(&self.file, self.size, self.modified) && !self.changed.load(Ordering::Relaxed);
        if !sound {
            self.changed.store(true, Ordering::Relaxed);
        }
        sound
    }
}

fn is_same(file: &File, size: u64, modified: Option<SystemTime>) -> bool {
    file.metadata().is_ok_and(|now: Metadata| now.len() == size && now.modified().ok() == modified)
}

/// What *source* holds, in memory that begins as a map does.
fn copied(mut source: impl Read, size: usize) -> io::Result<Mmap> {
    let mut memory = MmapMut::map_anon(size.max(1))?;
    source.read_exact(&mut memory[..size])?;
    memory.make_read_only()
}

/// The index of a file, mapped or read into memory.
pub fn load(path: &Path, mapped: bool) -> Result<Opened, Refused> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    let (size, modified) = (about.len(), about.modified().ok());
    if size == 0 {
        return Err(Refused::Damaged("the file is empty".into()));
    }
    let map = if mapped {
        // SAFETY: our files are never changed in place, only replaced, as docs/formats/index.md says. Who does
        // so nevertheless is detected by `Watch`, except for a change in the middle of a call.
        unsafe { Mmap::map(&file) }
    } else {
        copied(&file, usize::try_from(size).unwrap_or(usize::MAX))
    };
    let map = match map {
        Ok(map) => Arc::new(map),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(Refused::Changed),
        Err(error) => return Err(error.into()),
    };
    let mut opened = opened(&map);
    if let (true, Ok(opened)) = (mapped, &mut opened) {
        let (path, file, map) = (path.to_owned(), file.try_clone()?, Arc::downgrade(&map));
        opened.watch = Some(Watch { path, file, size, modified, map, changed: AtomicBool::new(false) });
    }
    if is_same(&file, size, modified) { opened } else { Err(Refused::Changed) }
}

/// The index that the bytes of a file are.
pub fn read(data: &[u8]) -> Result<Opened, Refused> {
    opened(&Arc::new(copied(data, data.len())?))
}

/// The index in *map*, every byte of it checked.
fn opened(map: &Arc<Mmap>) -> Result<Opened, Refused> {
    let layout = file::parse(map)?;
    let (bits, radius) = (layout.bits, layout.radius);
    let (entries, ids) = with_words!(bits.div_ceil(64), W => {
        let (segment, ids, order) = layout.open::<W>(map)?;
        (Box::new(Index::of_segment(bits, radius, segment)) as Box<dyn Entries>, Named::filed(ids, order))
    });
    let index = AnyIndex::of(bits, radius, entries, ids);
    Ok(Opened { index, digest: layout.digest, stamp: layout.stamp, watch: None })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::index::any::Names;
    use crate::index::file::About;
    use crate::join::rows::Given;

    fn bytes(index: &AnyIndex) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        let (snapshot, ids) = index.snapshot().unwrap();
        let about = About { bits: index.bits, radius: index.radius, digest: "0123" };
        snapshot.write(&mut out, &ids, &about).unwrap();
        out.into_inner()
    }

    #[test]
    fn what_was_written_is_read_and_written_again_as_it_was() {
        for words in [1, 3, 17, 32, 100, 600] {
            let mut index = AnyIndex::new(64 * words, 1);
            let rows: Vec<u64> = (0..9000 * words as u64).map(|at| crate::hash::mix::finish(at % 77_777)).collect();
            let rows = &rows[..(20_000 / words).min(9000) * words];
            let ids: Vec<i64> = (0..(rows.len() / words) as i64).map(|id| 3 * id).collect();
            index.add(Names::Numbers(&ids), Given::whole(rows, words), Names::NONE, 2).unwrap();
            let written = bytes(&index);
            assert_eq!(u32::from_le_bytes(written[28..32].try_into().unwrap()), words.next_power_of_two() as u32);
            let opened = read(&written).unwrap();
            assert_eq!((opened.digest.as_str(), opened.index.len()), ("0123", ids.len()));
            let hits = opened.index.search_one(&rows[words..2 * words], 0);
            assert!(hits.iter().any(|hit| hit.entry == 1));
            assert_eq!(bytes(&opened.index), written);
        }
    }

    #[test]
    fn a_damaged_byte_is_found() {
        let mut index = AnyIndex::new(64, 1);
        index.add(Names::Numbers(&[1, 2]), Given::whole(&[5, 6], 1), Names::NONE, 1).unwrap();
        let mut written = bytes(&index);
        let last = written.len() - 1;
        written[last] ^= 1;
        assert!(matches!(read(&written), Err(Refused::Damaged(_))));
    }
}
