#![forbid(unsafe_code)]
//! The numbers of words for which the Hamming engine is compiled: the one list of them.
//!
//! A fingerprint between two of them is padded with zeros. Up to 16 words (1,024 bits) it is every power of two, so
//! that at most half of a row is padding; beyond, every second one, because each costs the compiler seconds.
//! Plans and files do not know of that: for them a fingerprint has a power of two of words.

/// The widest fingerprints have this many words.
pub const MOST_WORDS: usize = 1024;

/// How many words plans and files see of a fingerprint.
pub fn stored(words: usize) -> usize {
    words.next_power_of_two()
}

/// Call the macro `$then` with what is given and then the number of words of each width.
#[cfg(not(test))]
macro_rules! widths {
    ($then:ident! $($before:tt)*) => {
        $then! { $($before)* 1 2 4 8 16 64 256 1024 }
    };
}

/// As many as it takes to test each kind.
#[cfg(test)]
macro_rules! widths {
    ($then:ident! $($before:tt)*) => {
        $then! { $($before)* 1 2 4 64 1024 }
    };
}

/// `$body` with `$W` as the number of words that `$words` is padded to.
macro_rules! with_words {
    ($words:expr, $W:ident => $body:expr) => {
        widths!(each_width! ($words) $W ($body))
    };
}

macro_rules! each_width {
    (($words:expr) $W:ident ($body:expr) $($count:literal)*) => {
        match $crate::hamming::widths::padded_words($words) {
            $($count => {
                const $W: usize = $count;
                $body
            })*
            more => unreachable!("{more} words: the Python side takes at most 1024"),
        }
    };
}

macro_rules! list {
    ($($count:literal)*) => {
        [$($count),*]
    };
}

/// The width that this many words are padded to.
pub fn padded_words(words: usize) -> usize {
    const WIDTHS: &[usize] = &widths!(list!);
    WIDTHS.iter().copied().find(|&width| words <= width).expect("the Python side takes at most 1024 words")
}

/// A row padded to `W` words.
pub fn padded<const W: usize>(row: &[u64]) -> [u64; W] {
    let mut wide = [0; W];
    wide[..row.len()].copy_from_slice(row);
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_is_the_least_that_holds_the_words() {
        for (words, width) in [(1, 1), (2, 2), (3, 4), (4, 4), (5, 64), (64, 64), (65, 1024), (1024, 1024)] {
            assert_eq!(padded_words(words), width);
            assert_eq!(with_words!(words, W => W), width);
        }
    }

    #[test]
    fn what_is_padded_is_zero() {
        assert_eq!(padded::<4>(&[1, 2, 3]), [1, 2, 3, 0]);
    }
}
