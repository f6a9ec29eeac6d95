#![forbid(unsafe_code)]
//! Winnowing: of all short runs of a text few are looked up, and none that two texts share goes unnoticed.
//!
//! Of any *window* neighbouring hashes the least one is taken. Two texts that share that many neighbouring runs have
//! the same hashes there, so the same least one is taken in both. Plainly:
//!
//! ```text
//! for each window: unless the last place taken is in it and has its least hash: take the last place that has it
//! ```
//!
//! Of equal hashes the one taken last stays as long as it can: in a text that repeats one word, few are taken. Then the
//! places may differ between two texts, but not the hash.

/// Call *taken* with the place of each hash that is taken.
pub fn winnow(hashes: &[u64], window: usize, mut taken: impl FnMut(usize)) {
    if hashes.len() < window {
        return;
    }
    let mut least = last_least(&hashes[..window]);
    taken(least);
    for (end, hash) in hashes.iter().enumerate().skip(window) {
        let begin = end + 1 - window;
        if *hash < hashes[least] {
            least = end;
        } else if least < begin {
            least = begin + last_least(&hashes[begin..=end]);
        } else {
            continue;
        }
        taken(least);
    }
}

/// The last place of the least hash.
fn last_least(hashes: &[u64]) -> usize {
    let mut least = 0;
    for (at, hash) in hashes.iter().enumerate() {
        if *hash <= hashes[least] {
            least = at;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix::finish;

    fn of(hashes: &[u64], window: usize) -> Vec<usize> {
        let mut all = Vec::new();
        winnow(hashes, window, |at| all.push(at));
        all
    }

    #[test]
    fn every_window_has_its_least_hash_taken() {
        for round in 0..200 {
            let kinds = 1 + round % 50;
            let hashes: Vec<u64> = (0..100).map(|at| finish(round << 32 | at) % kinds).collect();
            for window in [1, 2, 7, 21, 100] {
                let taken = of(&hashes, window);
                assert!(taken.is_sorted_by(|one, other| one < other));
                for (begin, some) in hashes.windows(window).enumerate() {
                    let least = some.iter().min().unwrap();
                    let holds = |at: &usize| (begin..begin + window).contains(at) && hashes[*at] == *least;
                    assert!(taken.iter().any(holds), "{round} {window} {begin}");
                }
            }
        }
    }

    #[test]
    fn few_of_equal_hashes_are_taken() {
        assert_eq!(of(&[7; 100], 10).len(), 10);
        assert!(of(&[7; 5], 10).is_empty());
    }
}
