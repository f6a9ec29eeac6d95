#![forbid(unsafe_code)]
//! Orders of documents, one document of each text, and the commonest fingerprint, in few bytes per document.

use std::cmp::Ordering;

use crate::arrow::array::ArrowTexts;
use crate::arrow::span::Span;
use crate::system::fault::{Fault, require};
use crate::system::memory;
use crate::system::parallel::map;

/// What items are ordered by: a number for each.
pub struct Key<'a> {
    pub numbers: &'a [u32],
    /// Whether the highest comes first.
    pub highest: bool,
}

impl Key<'_> {
    /// The number of a row, as one of which the lowest comes first.
    fn of(&self, row: usize) -> u32 {
        if self.highest { !self.numbers[row] } else { self.numbers[row] }
    }
}

/// The name of a row: bytes, in whose order rows are kept.
pub trait Name: Copy {
    fn size(self) -> usize;

    /// The byte at a place; any behind the last.
    fn byte(self, at: usize) -> u8;

    fn compare(self, other: Self) -> Ordering;
}

impl Name for &[u8] {
    fn size(self) -> usize {
        self.len()
    }

    fn byte(self, at: usize) -> u8 {
        self.get(at).copied().unwrap_or_default()
    }

    fn compare(self, other: &[u8]) -> Ordering {
        self.cmp(other)
    }
}

impl Name for Span<'_> {
    fn size(self) -> usize {
        self.len()
    }

    fn byte(self, at: usize) -> u8 {
        self.read(at).map_or(0, |[byte]| byte)
    }

    fn compare(self, other: Self) -> Ordering {
        let bytes = (0..self.len().min(other.len())).map(|at| self.byte(at).cmp(&other.byte(at)));
        bytes.into_iter().find(|found| found.is_ne()).unwrap_or(self.len().cmp(&other.len()))
    }
}

/// The places of *rows* in the order of their *keys*, which all rows have, and where those are equal in that of
/// their *ids*; without *rows* of all.
pub fn ordered(ids: &ArrowTexts, rows: Option<&[i32]>, keys: &[Key<'_>], threads: usize) -> Result<Vec<u32>, Fault> {
    let count = rows.map_or(ids.len(), <[i32]>::len);
    let known = |row: &i32| usize::try_from(*row).is_ok_and(|row| row < ids.len());
    let fits = i32::try_from(count).is_ok()
        && keys.iter().all(|key| key.numbers.len() == ids.len())
        && rows.is_none_or(|rows| rows.iter().all(known));
    require(fits, "rows must be known ones, and every id have its keys")?;
    let id = |row: usize| ids.item(row).ok().flatten().unwrap_or_default();
    Ok(order(rows, count, keys, id, threads))
}

/// Rows in the order of their keys, and where those are equal in that of their names: the places in *rows*,
/// or without it the rows themselves.
pub fn order<N: Name>(
    rows: Option<&[i32]>,
    count: usize,
    keys: &[Key<'_>],
    name: impl Fn(usize) -> N + Sync,
    threads: usize,
) -> Vec<u32> {
    let row = |at: usize| rows.map_or(at, |rows| rows[at] as usize);
    // The first key is stored before its item: most comparisons need no more. Without one, what names begin with.
    let alike = if keys.is_empty() { beginning((0..count).map(|at| name(row(at)))) } else { 0 };
    let first = |at: usize| match keys.first() {
        Some(key) => key.of(row(at)),
        None => begins_with(name(row(at)), alike),
    };
    let mut items: Vec<[u32; 2]> = memory::gathered((0..count).map(|at| [first(at), at as u32]));
    sort(&mut items, threads, |one, other| {
        one[0].cmp(&other[0]).then_with(|| {
            let (one, other) = (one[1] as usize, other[1] as usize);
            let (left, right) = (row(one), row(other));
            let unequal = keys.iter().skip(1).map(|key| key.of(left).cmp(&key.of(right))).find(|found| found.is_ne());
            unequal.unwrap_or_else(|| name(left).compare(name(right)).then(one.cmp(&other)))
        })
    });
    // They stay where they stood, as both have the same alignment, and that takes twice their room.
    let mut found: Vec<u32> = items.into_iter().map(|[_, item]| item).collect();
    found.shrink_to_fit();
    found
}

/// The length of the prefix that all names share.
fn beginning<N: Name>(mut names: impl Iterator<Item = N>) -> usize {
    let Some(first) = names.next() else { return 0 };
    names.fold(first.size(), |alike, name| {
        let alike = alike.min(name.size());
        (0..alike).find(|at| first.byte(*at) != name.byte(*at)).unwrap_or(alike)
    })
}

/// The four bytes of a name from *begin* on, which order as the bytes do.
fn begins_with<N: Name>(name: N, begin: usize) -> u32 {
    let byte = |at: usize| if begin + at < name.size() { name.byte(begin + at) } else { 0 };
    u32::from_be_bytes(std::array::from_fn(byte))
}

/// Rows that a thread sorts alone.
const ALONE: usize = 1 << 15;

/// Sort in place: each half, parted by the middle one, on half of the threads.
fn sort<T: Send>(items: &mut [T], threads: usize, compare: impl Fn(&T, &T) -> Ordering + Copy + Sync) {
    if threads <= 1 || items.len() <= ALONE {
        return items.sort_unstable_by(compare);
    }
    let (low, _, high) = items.select_nth_unstable_by(items.len() / 2, compare);
    let halves = vec![(low, threads.div_ceil(2)), (high, threads / 2)];
    map(2, halves, |(half, threads)| sort(half, threads, compare));
}

/// One document for each text.
pub struct Texts {
    /// The document of each text, in keep order.
    pub document: Vec<u32>,
    /// The text of each document, -1 for none.
    pub of_document: Vec<i32>,
    /// For each text the first that is equal to it except for its code.
    pub twin: Vec<u32>,
}

/// Of documents with the same 128 bits of content and the same code, the first in *order* represents all.
/// A content of 0 is none.
pub fn one_of_each(
    content: &[[u64; 2]],
    codes: Option<&[u32]>,
    order: impl ExactSizeIterator<Item = i32>,
) -> Result<Texts, Fault> {
    // What is negative becomes a row that nothing has.
    let order: Vec<u32> = memory::gathered(order.map(|row| row as u32));
    let known = order.iter().all(|row| (*row as usize) < content.len());
    let coded = codes.is_none_or(|codes| codes.len() == content.len());
    require(known && coded, "content must have two words per row, and the order known rows")?;
    Ok(representatives(content, codes, &order))
}

fn representatives(content: &[[u64; 2]], codes: Option<&[u32]>, order: &[u32]) -> Texts {
    let row = |[_, place]: [u32; 2]| order[place as usize] as usize;
    let text = |row: usize| (content[row], codes.map_or(0, |codes| codes[row]));
    let known = (0..order.len()).filter(|place| content[order[*place] as usize] != [0, 0]);
    let mut items: Vec<[u32; 2]> = memory::room_for(known.clone().count());
    items.extend(known.map(|place| [(content[order[place] as usize][0] >> 32) as u32, place as u32]));
    items.sort_unstable_by(|one, other| {
        one[0].cmp(&other[0]).then_with(|| text(row(*one)).cmp(&text(row(*other)))).then(one.cmp(other))
    });
    // First by the document that represents each, then by the number of that one.
    let mut of_document = memory::filled(content.len(), -1i32);
    let mut twin_of = memory::zeros::<u32>(if codes.is_some() { content.len() } else { 0 });
    let (mut first, mut same) = (0, 0);
    for (at, packed) in items.iter().enumerate() {
        let row = row(*packed);
        if at == 0 || text(row) != text(first) {
            if at == 0 || content[row] != content[first] {
                same = row;
            }
            first = row;
            if let Some(twin) = twin_of.get_mut(row) {
                *twin = same as u32;
            }
        }
        of_document[row] = first as i32;
    }
    drop(items);
    let document = memory::collected(order.iter().copied().filter(|row| of_document[*row as usize] == *row as i32));
    let mut number = memory::zeros::<u32>(content.len());
    for (at, row) in document.iter().enumerate() {
        number[*row as usize] = at as u32;
    }
    for text in &mut of_document {
        if let Some(number) = usize::try_from(*text).ok().map(|row| number[row]) {
            *text = number as i32;
        }
    }
    let twin_at = |row: &u32| twin_of.get(*row as usize).map(|twin| number[*twin as usize]);
    let twin = memory::collected(document.iter().map_while(twin_at));
    Texts { document, of_document, twin }
}

/// How many of the *valid* rows of *width* words are equal to the most frequent one, and which those are.
pub fn most_alike(words: &[u64], width: usize, valid: &[bool]) -> Result<Vec<u32>, Fault> {
    require(width > 0 && words.len() == width * valid.len(), "one flag for each row of words is needed")?;
    let row = |at: usize| &words[at * width..][..width];
    let key = |at: usize| row(at)[1..].iter().fold(row(at)[0], |key, word| key.wrapping_mul(SPREAD) ^ word);
    let rows = || (0..valid.len()).filter(|at| valid[*at]);
    // A quarter of the keys at a time; of equally frequent ones the first.
    let (mut most, mut wanted) = (0, 0);
    for part in 0..4 {
        let mut keys: Vec<u64> = memory::collected(rows().map(key).filter(|key| key >> 62 == part));
        keys.sort_unstable();
        for run in keys.chunk_by(|one, other| one == other) {
            if run.len() > most {
                (most, wanted) = (run.len(), run[0]);
            }
        }
    }
    let mut found: Vec<u32> = memory::collected(rows().filter(|at| most > 0 && key(*at) == wanted).map(|at| at as u32));
    let Some(first) = found.first().map(|at| *at as usize) else { return Ok(found) };
    found.retain(|at| row(*at as usize) == row(first));
    Ok(found)
}

const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::array::tests::array_of;

    #[test]
    fn many_are_sorted_alike_by_any_number_of_threads() {
        let names: Vec<String> =
            (0..3 * ALONE).map(|at| format!("id-{:x}", at.wrapping_mul(0x9e37_79b9) % 9973)).collect();
        let sorted = |threads| order(None, names.len(), &[], |row| names[row].as_bytes(), threads);
        let mut expected: Vec<u32> = (0..names.len() as u32).collect();
        expected.sort_by_key(|at| &names[*at as usize]);
        for threads in [1, 2, 3, 8] {
            assert!(sorted(threads) == expected, "{threads} threads");
        }
    }

    #[test]
    fn names_that_begin_alike_are_in_order() {
        let names = ["ab", "abc", "ab\0", "abcde", "abcdz", "abcd", "abd"];
        let found = order(None, names.len(), &[], |row| names[row].as_bytes(), 1);
        assert_eq!(found, [0, 2, 1, 5, 3, 4, 6]);
    }

    #[test]
    fn keys_decide_in_turn_and_then_names() {
        let names: [&[u8]; 5] = [b"e", b"b", b"c", b"a", b"d"];
        let key = |numbers, highest| Key { numbers, highest };
        let keys = [key(&[1, 0, 1, 1, 1], false), key(&[7, 9, 7, 7, 2], false)];
        assert_eq!(order(None, 5, &keys, |row| names[row], 2), [1, 4, 3, 2, 0]);
        assert_eq!(order(None, 5, &[key(&[7, 9, 7, 7, 2], true)], |row| names[row], 2), [1, 3, 2, 0, 4]);
        assert_eq!(order(None, 5, &[], |row| names[row], 2), [3, 1, 2, 4, 0]);
        assert_eq!(order(Some(&[4, 0, 3]), 3, &keys, |row| names[row], 2), [0, 2, 1]);
    }

    #[test]
    fn the_first_in_the_order_stands_for_its_text() {
        let content = [[1, 1], [2, 5], [1, 1], [0, 0], [2, 5], [1, 2]];
        let found = one_of_each(&content, None, [4, 2, 3, 5, 0, 1].into_iter()).unwrap();
        assert_eq!(found.document, [4, 2, 5]);
        assert_eq!(found.of_document, [1, 0, 1, -1, 0, 2]);
        assert!(found.twin.is_empty());
    }

    #[test]
    fn documents_of_two_codes_are_two_texts() {
        let content = [[1, 1], [1, 1], [1, 1], [9, 9]];
        let found = one_of_each(&content, Some(&[0, 1, 0, 1]), [3, 2, 1, 0].into_iter()).unwrap();
        assert_eq!(found.document, [3, 2, 1]);
        assert_eq!(found.of_document, [1, 2, 1, 0]);
        assert_eq!((found.twin[0], found.twin[1] == found.twin[2]), (0, true));
    }

    #[test]
    fn the_commonest_row_is_found_among_valid_ones() {
        let words = [5, 1, 5, 2, 5, 2, 5, 2, 5, 1];
        assert_eq!(most_alike(&words, 2, &[true; 5]).unwrap(), [1, 2, 3]);
        assert_eq!(most_alike(&words, 2, &[true, false, false, true, true]).unwrap(), [0, 4]);
        assert!(most_alike(&words, 2, &[false; 5]).unwrap().is_empty());
        assert!(most_alike(&words, 2, &[true; 4]).is_err());
        assert!(most_alike(&[], 0, &[]).is_err());
    }

    #[test]
    fn ids_of_an_array_are_ordered_as_bytes() {
        let ids = array_of(&[Some("b"), None, Some("aä"), Some("a")]);
        assert_eq!(ordered(&ids, None, &[], 1).unwrap(), [1, 3, 2, 0]);
        assert_eq!(ordered(&ids, Some(&[0, 3]), &[], 1).unwrap(), [1, 0]);
        assert!(ordered(&ids, Some(&[4]), &[], 1).is_err());
        assert!(ordered(&ids, Some(&[-1]), &[], 1).is_err());
        assert!(ordered(&ids, None, &[Key { numbers: &[1; 3], highest: false }], 1).is_err());
    }

    #[test]
    fn an_order_of_unknown_rows_is_refused() {
        assert!(one_of_each(&[[1, 1]], None, [1].into_iter()).is_err());
        assert!(one_of_each(&[[1, 1]], None, [-1].into_iter()).is_err());
        assert!(one_of_each(&[[1, 1]], Some(&[]), [0].into_iter()).is_err());
    }
}
