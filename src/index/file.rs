#![forbid(unsafe_code)]
//! The file of an index; docs/formats/index.md describes it.
//!
//! Every byte of the file is under a checksum, and everything that is used as a position is
//! checked before use: after a successful `parse` no search can leave the file.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use memmap2::Mmap;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::hamming::plan::Probe;
use crate::hamming::widths::{MOST_WORDS, stored};
use crate::index::frozen::{Frozen, MOST_SPARSE_WORDS};
use crate::index::ids::{Ids, order};
use crate::index::sparse::{self, MOST_ROWS, Sparse};
use crate::index::{Segment, Table};
use crate::system::column::{Column, Number};
use crate::system::memory::zeros;

pub const MAGIC: &[u8; 8] = b"NDINDEX\n";
pub const VERSION: u32 = 3;
const FIXED: usize = 64;
const SUM: usize = 16;
const ALIGN: usize = 64;
/// Enough for 64 tables of them.
const MOST_HEADER: usize = 1 << 22;

/// What is wrong with a file, and where.
pub struct Damage(pub String);

fn damage<T>(what: impl Into<String>) -> Result<T, Damage> {
    Err(Damage(what.into()))
}

/// The checksum of the header, which holds the checksums of all the rest: two files that have the same
/// are the same.
pub type Stamp = [u8; SUM];

/// The stamp of a file that begins as an index does.
pub fn stamp(file: &mut (impl Read + Seek)) -> io::Result<Option<Stamp>> {
    let (mut start, mut stamp) = ([0; 16], [0; SUM]);
    let read = file.read_exact(&mut start).and_then(|()| {
        file.seek(SeekFrom::Start((u32_at(&start, 12).max(SUM) - SUM) as u64))?;
        file.read_exact(&mut stamp)
    });
    match read {
        Ok(()) if start.starts_with(MAGIC) => Ok(Some(stamp)),
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the header says.
pub struct Layout {
    pub bits: usize,
    pub words: usize,
    pub radius: u32,
    pub id_kind: u32,
    pub entries: usize,
    pub digest: String,
    pub stamp: Stamp,
    tables: usize,
    sections: Vec<(usize, usize)>,
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::get(&bytes[at..at + 4]) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::get(&bytes[at..at + 8])
}

fn sum_at(bytes: &[u8], at: usize) -> u128 {
    u128::from(u64_at(bytes, at)) | u128::from(u64_at(bytes, at + 8)) << 64
}

/// Check a whole file: header, lengths, checksums, and every position in it.
pub fn parse(file: &[u8]) -> Result<Layout, Damage> {
    if file.len() < FIXED + SUM || &file[..8] != MAGIC {
        return damage("this is not an index of neardup (offset 0)");
    }
    let version = u32_at(file, 8);
    if version > VERSION as usize {
        return damage(format!("made by version {version} of the format; this neardup reads up to {VERSION}"));
    }
    if version == 1 || version == 2 {
        return damage(format!(
            "made by version {version} of the format, which was never released; build the index anew"
        ));
    }
    let header = u32_at(file, 12);
    if version == 0
        || !(FIXED + SUM..=MOST_HEADER).contains(&header)
        || header > file.len()
        || !header.is_multiple_of(ALIGN)
    {
        return damage("the header's length is impossible (offset 12)");
    }
    if xxh3_128(&file[..header - SUM]) != sum_at(file, header - SUM) {
        return damage(format!("the header is damaged (offset 0 to {header})"));
    }
    if u64_at(file, 16) != file.len() as u64 {
        return damage(format!("the file has {} bytes, not {} as it says (offset 16)", file.len(), u64_at(file, 16)));
    }
    let (bits, words, radius, id_kind) = (u32_at(file, 24), u32_at(file, 28), u32_at(file, 32), u32_at(file, 36));
    let entries = u64_at(file, 40);
    let (tables, count, digest, writer) = (u32_at(file, 48), u32_at(file, 52), u32_at(file, 56), u32_at(file, 60));
    if !words.is_power_of_two()
        || words > MOST_WORDS
        || bits == 0
        || words != stored(bits.div_ceil(64))
        || radius > bits
        || id_kind > 2
        || entries >= u64::from(u32::MAX)
        || tables > 64
    {
        return damage("the header holds impossible values (offset 24)");
    }
    let start = FIXED + digest + writer;
    if start + count * 32 + SUM > header {
        return damage("the header's lengths are impossible (offset 52)");
    }
    let Ok(digest) = std::str::from_utf8(&file[FIXED..FIXED + digest]) else {
        return damage(format!("the scheme's name is not a text (offset {FIXED})"));
    };
    let mut sections = Vec::with_capacity(count);
    let mut expected = header;
    for number in 0..count {
        let at = start + number * 32;
        let (offset, length) = (u64_at(file, at), u64_at(file, at + 8));
        let padded = length.checked_next_multiple_of(ALIGN as u64).unwrap_or(u64::MAX);
        if offset != expected as u64 || padded > (file.len() - expected) as u64 {
            return damage(format!("section {number} lies outside the file (offset {at})"));
        }
        let end = expected + padded as usize;
        if xxh3_128(&file[expected..end]) != sum_at(file, at + 16) {
            return damage(format!("section {number} is damaged (offset {expected} to {end})"));
        }
        sections.push((expected, length as usize));
        expected = end;
    }
    if expected != file.len() {
        return damage(format!("bytes after the last section (offset {expected})"));
    }
    let layout = Layout {
        bits,
        words,
        radius: radius as u32,
        id_kind: id_kind as u32,
        entries: entries as usize,
        digest: digest.to_owned(),
        stamp: sum_at(file, header - SUM).to_le_bytes(),
        tables,
        sections,
    };
    layout.check(file)?;
    Ok(layout)
}

impl Layout {
    fn numbers<'a>(&self, file: &'a [u8], section: usize, size: usize, count: usize) -> Result<&'a [u8], Damage> {
        match self.sections.get(section) {
            Some(&(offset, length)) if count.checked_mul(size) == Some(length) => Ok(&file[offset..offset + length]),
            _ => damage(format!("section {section} has an impossible length")),
        }
    }

    /// A section of however many numbers.
    fn any<'a>(&self, file: &'a [u8], section: usize, size: usize) -> Result<&'a [u8], Damage> {
        let length = self.sections.get(section).map_or(0, |section| section.1);
        self.numbers(file, section, size, length / size)
    }

    fn probe(&self, file: &[u8], table: usize) -> Result<Probe, Damage> {
        let each = 8 + self.words * 8;
        let bytes = &self.numbers(file, 0, each, self.tables)?[table * each..(table + 1) * each];
        let mask: Vec<u64> = bytes[8..].chunks_exact(8).map(u64::get).collect();
        let width: u32 = mask.iter().map(|word| word.count_ones()).sum();
        let radius = u32::get(&bytes[..4]);
        if width == 0 || width > 28 || radius > 4 || u32_at(bytes, 4) != usize::from(self.is_sparse(file)) {
            return damage(format!("table {table} is impossible"));
        }
        Ok(Probe { mask, radius })
    }

    /// Whether fingerprints are there once, and tables name their places.
    fn is_sparse(&self, file: &[u8]) -> bool {
        let (offset, length) = self.sections.first().copied().unwrap_or_default();
        length >= 8 && u32_at(file, offset + 4) == 1
    }

    /// The tables must answer the radius of the index: otherwise what is near would not be found.
    fn check_tables(&self, file: &[u8]) -> Result<(), Damage> {
        self.numbers(file, 0, 8 + self.words * 8, self.tables)?;
        let (mut seen, mut reach) = (vec![0u64; self.words], 0);
        for table in 0..self.tables {
            let probe = self.probe(file, table)?;
            for (seen, bits) in seen.iter_mut().zip(&probe.mask) {
                if *seen & bits != 0 {
                    return damage(format!("table {table} has bits of another one in its key"));
                }
                *seen |= bits;
            }
            reach += probe.radius + 1;
        }
        if self.tables > 0 && reach <= self.radius {
            return damage(format!("the tables do not reach the radius {}", self.radius));
        }
        Ok(())
    }

    /// Sections are, with fingerprints in full: tables, planes, entries; then for each table bounds and (except for
    /// the first) planes and entries. With fingerprints that are there once: tables, rows, entries; then for each
    /// table present, before, slots, crowds. Then ids and, unless they are counted, the order of the ids.
    fn check(&self, file: &[u8]) -> Result<(), Damage> {
        let below =
            |bytes: &[u8], limit: usize| bytes.chunks_exact(4).all(|number| (u32::get(number) as usize) < limit);
        let above = |word: usize| match self.bits.saturating_sub(word * 64) {
            0 => u64::MAX,
            own @ 1..64 => u64::MAX << own,
            _ => 0,
        };
        let has_above = |bytes: &[u8], above: u64| bytes.chunks_exact(8).any(|word| u64::get(word) & above != 0);
        let too_wide =
            |section: usize| damage(format!("a fingerprint has bits above its {} bits (section {section})", self.bits));
        let mut next = 1;
        let planes = |next: &mut usize| -> Result<(), Damage> {
            for word in 0..self.words {
                let plane = self.numbers(file, *next, 8, self.entries)?;
                if above(word) != 0 && has_above(plane, above(word)) {
                    return too_wide(*next);
                }
                *next += 1;
            }
            Ok(())
        };
        self.check_tables(file)?;
        let is_sparse = self.is_sparse(file);
        if is_sparse {
            if self.words > MOST_SPARSE_WORDS || self.entries > MOST_ROWS {
                return damage("the fingerprints cannot lie row by row");
            }
            let rows = self.numbers(file, next, self.words * 8, self.entries)?;
            for word in (0..self.words).filter(|&word| above(word) != 0) {
                if rows.chunks_exact(self.words * 8).any(|row| u64_at(row, word * 8) & above(word) != 0) {
                    return too_wide(next);
                }
            }
            next += 1;
        } else {
            planes(&mut next)?;
        }
        if !below(self.numbers(file, next, 4, self.entries)?, self.entries) {
            return damage("an entry is out of range");
        }
        next += 1;
        for table in 0..self.tables {
            let width: u32 = self.probe(file, table)?.mask.iter().map(|word| word.count_ones()).sum();
            if is_sparse {
                let words = sparse::words_of(width);
                let present = self.numbers(file, next, 8, words)?;
                let before = self.numbers(file, next + 1, 4, words)?;
                let (slots, crowds) = (self.any(file, next + 2, 4)?, self.any(file, next + 3, 4)?);
                if !sparse::is_sound(width, [before, slots, crowds], present, self.entries) {
                    return damage(format!("table {table} does not fit together (section {next})"));
                }
                next += 4;
                continue;
            }
            let bounds = self.numbers(file, next, 4, (1 << width) + 1)?;
            let mut last = 0;
            for bound in bounds.chunks_exact(4).map(u32::get) {
                if bound < last {
                    return damage(format!("the bounds of table {table} go back"));
                }
                last = bound;
            }
            if last as usize != self.entries {
                return damage(format!("the bounds of table {table} do not end at its entries"));
            }
            next += 1;
            if table > 0 {
                planes(&mut next)?;
                if !below(self.numbers(file, next, 4, self.entries)?, self.entries) {
                    return damage(format!("an entry of table {table} is out of range"));
                }
                next += 1;
            }
        }
        match self.id_kind {
            0 => {}
            1 => {
                self.numbers(file, next, 8, self.entries)?;
                next += 1;
            }
            _ => {
                let ends = self.numbers(file, next, 8, self.entries)?;
                let Some(&(offset, length)) = self.sections.get(next + 1) else {
                    return damage("the texts of the ids are missing");
                };
                let texts = &file[offset..offset + length];
                let mut last = 0;
                for end in ends.chunks_exact(8).map(u64::get) {
                    if end < last
                        || end > length as u64
                        || std::str::from_utf8(&texts[last as usize..end as usize]).is_err()
                    {
                        return damage("an id is not a text");
                    }
                    last = end;
                }
                if last != length as u64 {
                    return damage("texts after the last id");
                }
                next += 2;
            }
        }
        if self.id_kind > 0 {
            if !below(self.numbers(file, next, 4, self.entries)?, self.entries) {
                return damage("the order of the ids is out of range");
            }
            next += 1;
        }
        if next != self.sections.len() {
            return damage("the number of sections is wrong");
        }
        Ok(())
    }

    /// The segment of a file that `parse` accepted, its ids, and their order.
    pub fn open<const W: usize>(&self, map: &Arc<Mmap>) -> Result<(Frozen<W>, Ids, Column<u32>), Damage> {
        let mut next = 1;
        fn take<T: Number>(layout: &Layout, map: &Arc<Mmap>, next: &mut usize) -> Result<Column<T>, Damage> {
            let Some(&(offset, length)) = layout.sections.get(*next) else {
                return damage("a section is missing");
            };
            *next += 1;
            Column::mapped(map, offset, length / T::SIZE).ok_or_else(|| Damage("a section is out of place".into()))
        }
        let frozen = if self.is_sparse(map) {
            let (rows, entries) = (take(self, map, &mut next)?, take(self, map, &mut next)?);
            let mut tables = Vec::new();
            for number in 0..self.tables {
                let mut table = sparse::Table::<W>::new(&self.probe(map, number)?);
                table.present = take(self, map, &mut next)?;
                table.before = take(self, map, &mut next)?;
                table.slots = take(self, map, &mut next)?;
                table.crowds = take(self, map, &mut next)?;
                tables.push(table);
            }
            Frozen::Sparse(Sparse { rows, entries, tables })
        } else {
            // The file has fewer words than a row in memory where the engine is not compiled for its width.
            let planes = |next: &mut usize| -> Result<Vec<_>, Damage> {
                let mut planes =
                    (0..self.words).map(|_| take::<u64>(self, map, next)).collect::<Result<Vec<_>, _>>()?;
                planes.resize_with(W, || Column::Owned(zeros(self.entries)));
                Ok(planes)
            };
            let mut segment =
                Segment { planes: planes(&mut next)?, entries: take(self, map, &mut next)?, tables: Vec::new() };
            for number in 0..self.tables {
                let mut table = Table::<W>::new(&self.probe(map, number)?);
                table.bounds = take(self, map, &mut next)?;
                if number > 0 {
                    table.planes = planes(&mut next)?;
                    table.entries = take(self, map, &mut next)?;
                }
                segment.tables.push(table);
            }
            Frozen::Full(segment)
        };
        let ids = match self.id_kind {
            0 => Ids::Counted(self.entries),
            1 => Ids::Numbers(take(self, map, &mut next)?),
            _ => Ids::Texts { ends: take(self, map, &mut next)?, bytes: take(self, map, &mut next)? },
        };
        let order = if self.id_kind == 0 { Column::default() } else { take(self, map, &mut next)? };
        Ok((frozen, ids, order))
    }
}

/// Where an index is written to.
pub trait Out: Write + Seek {}

impl<F: Write + Seek> Out for F {}

struct Writer<'a> {
    file: &'a mut dyn Out,
    at: u64,
    sections: Vec<(u64, u64, u128)>,
}

impl Writer<'_> {
    fn section<T: Number>(&mut self, values: &[T]) -> io::Result<()> {
        let mut hasher = Xxh3::new();
        let mut buffer = Vec::with_capacity(1 << 20);
        let offset = self.at;
        let length = (values.len() * T::SIZE) as u64;
        let mut chunks = values.chunks((1 << 20) / T::SIZE).peekable();
        loop {
            buffer.clear();
            for value in chunks.next().unwrap_or_default() {
                value.put(&mut buffer);
            }
            let last = chunks.peek().is_none();
            if last {
                buffer.resize(buffer.len().next_multiple_of(ALIGN), 0);
            }
            hasher.update(&buffer);
            self.file.write_all(&buffer)?;
            self.at += buffer.len() as u64;
            if last {
                break;
            }
        }
        self.sections.push((offset, length, hasher.digest128()));
        Ok(())
    }
}

/// What is written beside the segment and the ids.
pub struct About<'a> {
    pub bits: usize,
    pub radius: u32,
    pub digest: &'a str,
}

/// Write an index; its stamp. Whoever has the file sees to it that it appears whole.
pub fn write<const W: usize>(
    file: &mut dyn Out,
    segment: &Frozen<W>,
    ids: &Ids,
    about: &About<'_>,
) -> io::Result<Stamp> {
    let writer = env!("CARGO_PKG_VERSION");
    let id_kind = match ids {
        Ids::Counted(_) => 0,
        Ids::Numbers(_) => 1,
        Ids::Texts { .. } => 2,
    };
    let words = stored(about.bits.div_ceil(64));
    let (tables, sections) = match segment {
        Frozen::Full(full) => {
            let tables = full.tables.len();
            (tables, 2 + words + tables + tables.saturating_sub(1) * (words + 1))
        }
        Frozen::Sparse(sparse) => (sparse.tables.len(), 3 + 4 * sparse.tables.len()),
    };
    let count = sections + [0, 2, 3][id_kind];
    let header = (FIXED + about.digest.len() + writer.len() + count * 32 + SUM).next_multiple_of(ALIGN);
    if header > MOST_HEADER {
        return Err(io::Error::other("the scheme's digest is too long to store"));
    }
    file.write_all(&vec![0; header])?;
    let mut out = Writer { file, at: header as u64, sections: Vec::new() };
    let mut probes: Vec<u64> = Vec::new();
    match segment {
        Frozen::Full(full) => {
            for table in &full.tables {
                probes.push(u64::from(table.radius));
                probes.extend(&table.mask[..words]);
            }
            out.section(&probes)?;
            for plane in &full.planes[..words] {
                out.section(plane.slice())?;
            }
            out.section(full.entries.slice())?;
            for (number, table) in full.tables.iter().enumerate() {
                out.section(table.bounds.slice())?;
                if number > 0 {
                    for plane in &table.planes[..words] {
                        out.section(plane.slice())?;
                    }
                    out.section(table.entries.slice())?;
                }
            }
        }
        Frozen::Sparse(sparse) => {
            for table in &sparse.tables {
                probes.push(u64::from(table.radius) | 1 << 32);
                probes.extend(&table.mask[..words]);
            }
            out.section(&probes)?;
            out.section(sparse.rows.slice())?;
            out.section(sparse.entries.slice())?;
            for table in &sparse.tables {
                out.section(table.present.slice())?;
                out.section(table.before.slice())?;
                out.section(table.slots.slice())?;
                out.section(table.crowds.slice())?;
            }
        }
    }
    match ids {
        Ids::Counted(_) => {}
        Ids::Numbers(numbers) => out.section(numbers.slice())?,
        Ids::Texts { bytes, ends } => {
            out.section(ends.slice())?;
            out.section(bytes.slice())?;
        }
    }
    if id_kind > 0 {
        out.section(&order(ids))?;
    }
    let mut head = Vec::with_capacity(header);
    head.extend_from_slice(MAGIC);
    VERSION.put(&mut head);
    (header as u32).put(&mut head);
    out.at.put(&mut head);
    for value in [about.bits as u32, words as u32, about.radius, id_kind as u32] {
        value.put(&mut head);
    }
    (segment.len() as u64).put(&mut head);
    for value in [tables, out.sections.len(), about.digest.len(), writer.len()] {
        (value as u32).put(&mut head);
    }
    head.extend_from_slice(about.digest.as_bytes());
    head.extend_from_slice(writer.as_bytes());
    for (offset, length, sum) in &out.sections {
        offset.put(&mut head);
        length.put(&mut head);
        (*sum as u64).put(&mut head);
        ((*sum >> 64) as u64).put(&mut head);
    }
    head.resize(header - SUM, 0);
    let sum = xxh3_128(&head);
    (sum as u64).put(&mut head);
    ((sum >> 64) as u64).put(&mut head);
    out.file.seek(SeekFrom::Start(0))?;
    out.file.write_all(&head)?;
    Ok(sum.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::hamming::plan::split_mix;
    use crate::index::ids::{Id, Named};

    fn written(ids: &Ids) -> Vec<u8> {
        let mut state = 1;
        let mut rows: Vec<[u64; 2]> =
            (0..200).map(|_| [split_mix(&mut state) % 999, split_mix(&mut state) >> 24]).collect();
        rows.extend_from_within(..ids.len() - 200);
        let probes = [Probe { mask: vec![0xff, 0], radius: 1 }, Probe { mask: vec![0x100, 0xff], radius: 2 }];
        let segment = Frozen::Sparse(Sparse::build(&rows, (0..rows.len() as u32).collect(), &probes, 1));
        let mut out = Cursor::new(Vec::new());
        write(&mut out, &segment, ids, &About { bits: 104, radius: 4, digest: "abc" }).ok().unwrap();
        out.into_inner()
    }

    /// Make all checksums right again.
    fn seal(file: &mut [u8]) {
        let header = u32_at(file, 12);
        let start = FIXED + u32_at(file, 56) + u32_at(file, 60);
        for at in (0..u32_at(file, 52)).map(|number| start + number * 32) {
            let (offset, length) = (u64_at(file, at) as usize, u64_at(file, at + 8) as usize);
            let sum = xxh3_128(&file[offset..offset + length.next_multiple_of(ALIGN)]);
            file[at + 16..at + 32].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = xxh3_128(&file[..header - SUM]);
        file[header - SUM..header].copy_from_slice(&sum.to_le_bytes());
    }

    #[test]
    fn a_forged_file_of_tables_of_places_is_refused_or_searched_without_harm() {
        let mut ids = Ids::texts();
        (0..230).for_each(|id| _ = ids.push(Id::Text(format!("id {}", id % 200).as_bytes())));
        let sound = written(&ids);
        assert!(parse(&sound).is_ok());
        let (mut state, mut refused, mut read) = (7, 0, 0);
        let first = u32_at(&sound, 12);
        for _ in 0..4000 {
            let mut forged = sound.clone();
            let at = first + split_mix(&mut state) as usize % (sound.len() - first);
            forged[at] ^= 1 << (split_mix(&mut state) % 8);
            seal(&mut forged);
            let Ok(layout) = parse(&forged) else {
                refused += 1;
                continue;
            };
            let mut map = memmap2::MmapMut::map_anon(forged.len()).unwrap();
            map.copy_from_slice(&forged);
            let map = Arc::new(map.make_read_only().unwrap());
            let (segment, ids, order) = layout.open::<2>(&map).ok().unwrap();
            let Frozen::Sparse(sparse) = &segment else { panic!("it says what it is") };
            let asked = [[5, 5], [u64::MAX, 77], sparse.rows()[9]];
            let asked: Vec<_> = (0..).zip(asked).collect();
            sparse.search(&asked, 4, &mut |_, entry, _| assert!(entry < 230));
            Named::filed(ids, order).entries(Id::Text(b"id 7"));
            read += 1;
        }
        assert!(refused > 1000 && read > 100, "{refused} {read}");
    }

    #[test]
    fn tables_that_cannot_answer_the_radius_are_refused() {
        let mut ids = Ids::Counted(0);
        (0..210).for_each(|id| _ = ids.push(Id::Number(id)));
        let file = written(&ids);
        let tables = u32_at(&file, 12);
        for (at, what) in [(tables, "do not reach the radius 4"), (tables + 24 + 4, "table 1 is impossible")] {
            let mut forged = file.clone();
            forged[at] = 0;
            seal(&mut forged);
            assert!(parse(&forged).err().unwrap().0.contains(what));
        }
        // The second table with a bit of the first.
        let mut forged = file.clone();
        forged[tables + 24 + 8] |= 1;
        seal(&mut forged);
        assert!(parse(&forged).err().unwrap().0.contains("bits of another one"));
    }
}
